"""The walks of ARCHITECTURE.md go down its list of rooms and come back up once: no step goes to and fro."""

from __future__ import annotations

import itertools
import re

import pytest
from markdown_pages import ROOT, without_blocks

TEXT = without_blocks((ROOT / "ARCHITECTURE.md").read_text())
ROOMS = [
    name
    for row in re.findall(r"^\| (`.*?) \|", TEXT[TEXT.index("## The rooms") : TEXT.index("What is built on it")], re.M)
    for name in re.findall(r"`([^`]+)`", row)
]


def section(title: str) -> str:
    return TEXT[TEXT.index(f"## {title}\n") :].split("\n## ")[0]


def room_of(path: str) -> int:
    """The place in the list of the room that a file is in: the folder that says most about it."""
    fitting = [number for number, room in enumerate(ROOMS) if path == room or path.startswith(room)]
    assert fitting, f"{path} is in no room of the list"
    return max(fitting, key=lambda number: len(ROOMS[number]))


def bold(title: str) -> list[str]:
    """The files that a section's steps are about."""
    return re.findall(r"\*\*`([\w/.]+)`\*\*", section(title))


def steps(node: str) -> list[str]:
    """The files that opening a channel visits on one node, in order."""
    found: list[str] = []
    for part in section("One channel being opened").split("\nOn node ")[1:]:
        if part.startswith(node):
            for files in re.findall(r"^\| \d+ \| (.*?) \|", part, re.MULTILINE):
                found += re.findall(r"`([\w/.]+)`", files)
    return found


WALKS = {
    "a message on one node": bold("One message on one node"),
    "a message to another node": bold("One message to another node"),
    "the node that asks": steps("B"),
    "the node that sends": steps("A"),
}


def turns(rooms: list[int]) -> int:
    """How often a walk that goes down turns round."""
    moves = [after - before for before, after in itertools.pairwise(rooms) if after != before]
    down = True
    count = 0
    for move in moves:
        if (move > 0) != down:
            down, count = not down, count + 1
    return count


@pytest.mark.parametrize("walk", WALKS)
def test_it_goes_down_and_comes_back_once(walk: str) -> None:
    files = WALKS[walk]
    assert len(files) >= 4
    rooms = list(map(room_of, files))
    assert turns(rooms) <= 1, [(ROOMS[room], file) for room, file in zip(rooms, files, strict=True)]


def test_turns_are_counted() -> None:
    assert [turns(rooms) for rooms in ([1, 2, 2, 5], [1, 5, 3, 1], [1, 5, 3, 4], [5, 1])] == [0, 1, 2, 1]
