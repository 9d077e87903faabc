"""Every file and folder of this project that a page names in `code` is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_pages import ROOT, blocks, pages, without_blocks

PLACES = ("src", "native", "tests", "tools", "bench", "examples", "docs", ".ci")
MINE = {"first.py", "my_package/", "room_heat/", "room_heat/room_heat_pipeline.py", "room_heat_pipeline.py"}
"""What a reader makes."""
OF_THE_SYSTEM = re.compile(
    r"/|~|out/|lake/|data/|commits/|_delta_log/|schemas/|models/|build/|@|lab/temperature|[a-z]+/\*"
)

_NAMED = re.compile(r"`([\w.{},*/<>-]+(?:\.(?:py|cpp|hpp|sh|pyi|in)|/))`")


def tree() -> list[str]:
    found = []
    for place in PLACES:
        for path in (ROOT / place).rglob("*"):
            if "__pycache__" not in path.parts:
                found.append("/" + str(path.relative_to(ROOT)) + ("/" if path.is_dir() else ""))
    return [*found, *(f"/{place}/" for place in PLACES)]


TREE = tree()


def expanded(name: str) -> Iterator[str]:
    """`a/{b,c}.py` is two."""
    found = re.search(r"\{([^}]*)\}", name)
    if found is None:
        yield name
        return
    for part in found[1].split(","):
        yield from expanded(name[: found.start()] + part + name[found.end() :])


def exists(name: str) -> bool:
    """Whether some file's path ends so."""
    return any(path.endswith("/" + name) for path in TREE)


def names(text: str) -> list[str]:
    found = [one for written in _NAMED.findall(without_blocks(text)) for one in expanded(written)]
    return [name for name in found if not OF_THE_SYSTEM.match(name) and "<" not in name and name not in MINE]


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_it_names_is_there(page: Path) -> None:
    assert sorted({name for name in names(page.read_text()) if not exists(name)}) == []


def test_drawings_of_the_architecture_name_files_that_are_there() -> None:
    text = "\n".join(block.text for block in blocks((ROOT / "ARCHITECTURE.md").read_text()))
    drawn = re.findall(r"[\w/]+\.(?:py|cpp|hpp)\b", text)
    assert len(drawn) > 10
    assert [name for name in drawn if not exists(name)] == []


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = [path for path in (ROOT / "src" / "ringcast").rglob("*") if (path / "__init__.py").exists()]
    own = [path for path in rooms if len(path.relative_to(ROOT / "src" / "ringcast").parts) == 1]
    own += [path for path in rooms if path.parent.name == "daemon"]
    own += [path for path in (ROOT / "native").iterdir() if path.is_dir() and path.name not in ("tests", "bench")]
    missing = [path.name for path in own if f"{path.name}/" not in text]
    assert missing == []


def test_a_file_that_is_not_there_is_found() -> None:
    assert names("see `daemon/{server,none}.py`, `native/ring/`, `out/x.py`, `TagError`\n```\n`x.py`\n```\n") == [
        "daemon/server.py", "daemon/none.py", "native/ring/",
    ]  # fmt: skip
    assert exists("daemon/server.py")
    assert not exists("daemon/none.py")
    assert not exists("erver.py")
