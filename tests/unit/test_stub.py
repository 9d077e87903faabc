"""The stub file says what the native module has: the same names, the same parameters, the same defaults.

mypy's stubtest cannot see into nanobind's functions: it reports each as "not a function" and compares nothing. They
carry their signature with them, so the comparison is made here.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from ringcast import _core, _lab

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ringcast"
TREE = ast.parse((SOURCE / "_core.pyi").read_text())
LAB = ast.parse((SOURCE / "_lab.pyi").read_text())
# Made by the core and never named by anyone: what memoryviews of lent messages keep alive.
PRIVATE = {"RingBytes"}
# Python 3.11 has no way to see these on a C type.
INVISIBLE = {"__buffer__"}

Parameters = list[tuple[str, str, bool]]


def parameters(function: ast.FunctionDef) -> Parameters:
    """(name, kind, has a default) of each parameter but self."""
    a = function.args
    positional = [*a.posonlyargs, *a.args]
    defaults = [False] * (len(positional) - len(a.defaults)) + [True] * len(a.defaults)
    found = [(arg.arg, "positional", default) for arg, default in zip(positional, defaults, strict=True)]
    found += [
        (arg.arg, "keyword", default is not None) for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]
    return [row for row in found if row[0] not in ("self", "cls")]


def native_parameters(function: object) -> Parameters | None:
    """The same, as the function tells it; None for what tells nothing."""
    signatures = getattr(function, "__nb_signature__", None)
    if signatures:
        text = signatures[0][0].replace("\\", "0 + ")
    elif inspect.ismethoddescriptor(function) and getattr(function, "__text_signature__", None):
        # Methods called for every message go round nanobind's dispatch, and say their parameters as C functions do.
        text = f"def it{inspect.signature(function)}"
    else:
        return None
    tree = ast.parse(text + ": ...").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return parameters(tree)


def stub_classes() -> dict[str, ast.ClassDef]:
    return {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}


def stub_functions(nodes: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


def names_of(nodes: list[ast.stmt]) -> set[str]:
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {
        node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in function.decorator_list)


def test_the_module_has_what_the_stub_has() -> None:
    native = {name for name in vars(_core) if not name.startswith("_")} - PRIVATE
    assert names_of(TREE.body) == native


def test_the_labs_module_has_what_its_stub_has() -> None:
    assert names_of(LAB.body) == {name for name in vars(_lab) if not name.startswith("_")}
    for name, stub in stub_functions(LAB.body).items():
        assert parameters(stub) == native_parameters(getattr(_lab, name))


@pytest.mark.parametrize("name", sorted(stub_classes()))
def test_a_class_has_what_the_stub_has(name: str) -> None:
    native = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
    assert {member for member in names_of(stub_classes()[name].body) if not member.startswith("_")} == native


FUNCTIONS = [("", name) for name in stub_functions(TREE.body)] + [
    (cls, name) for cls, node in stub_classes().items() for name in stub_functions(node.body) if name not in INVISIBLE
]


@pytest.mark.parametrize(("cls", "name"), FUNCTIONS)
def test_parameters_agree(cls: str, name: str) -> None:
    owner = getattr(_core, cls) if cls else _core
    stub = stub_functions(stub_classes()[cls].body if cls else TREE.body)[name]
    if is_property(stub):
        assert inspect.isdatadescriptor(inspect.getattr_static(owner, name))
        return
    native = native_parameters(getattr(owner, name))
    if native is None and name == "__init__":
        # Where the object cannot exist before its arguments are known, the constructor is __new__.
        native = native_parameters(owner.__new__)
    assert native is not None, f"{cls}.{name} is no native function"
    written = parameters(stub)
    if name == "__exit__":  # Python passes these by position; their names are nobody's business
        written, native = [row[1:] for row in written], [row[1:] for row in native]  # type: ignore[misc]
    assert written == native
