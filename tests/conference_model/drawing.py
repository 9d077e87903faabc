"""The whiteboard: strokes, lines, boxes, ellipses and text, and undoing one's own.

A board is a set of things drawn, without those that their authors undid. Each has its author and its author's count
(`n`): an undo names a count, and is its author's own by construction. What is drawn later lies above. Invariant: the
board depends on which values were received, not on their order; so a late joiner who pulls them sees the same board.

Coordinates are whole numbers from 0 to 10000, in both directions, whatever the size of the window.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ringcast.conference.presence import BadValue

EXTENT = 10_000
MOST_POINTS = 1024
MOST_TEXT = 500
COLOUR = r"^#[0-9a-f]{6}$"

Coordinate = Annotated[int, Meta(ge=0, le=EXTENT)]
Number = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
Point = tuple[Coordinate, Coordinate]


class Drawn(msgspec.Struct, frozen=True, kw_only=True, tag="drawn", tag_field="do"):
    """A thing on the board. `at` is its author's clock in milliseconds. A stroke has all its points; of a line, a box
    and an ellipse the first and the last count, and of a text the first."""

    id: Number
    n: Number
    at: int
    shape: Literal["stroke", "line", "box", "ellipse", "text"]
    points: Annotated[list[Point], Meta(min_length=1, max_length=MOST_POINTS)]
    colour: Annotated[str, Meta(pattern=COLOUR)] = "#202020"
    width: Annotated[int, Meta(ge=1, le=60)] = 3
    text: Annotated[str, Meta(max_length=MOST_TEXT)] = ""


class Undone(msgspec.Struct, frozen=True, kw_only=True, tag="undone", tag_field="do"):
    """`of` is the count of what its author takes back."""

    id: Number
    n: Number
    at: int
    of: Number


Action = Drawn | Undone
_DECODER: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)


def read_untrusted(data: bytes) -> Action:
    """Raises BadValue."""
    try:
        return _DECODER.decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        raise BadValue(f"not something drawn: {exc}") from exc


class Board:
    def __init__(self) -> None:
        self._drawn: dict[tuple[int, int], Drawn] = {}
        self._undone: set[tuple[int, int]] = set()

    def take(self, action: Action) -> None:
        if isinstance(action, Undone):
            self._undone.add((action.id, action.of))
        else:
            self._drawn.setdefault((action.id, action.n), action)

    def things(self) -> list[Drawn]:
        """What is to be seen, from the bottom up."""
        left = [drawn for key, drawn in self._drawn.items() if key not in self._undone]
        return sorted(left, key=lambda drawn: (drawn.at, drawn.id, drawn.n))

    def undoable(self, participant: int) -> int | None:
        """The count of what this participant drew last and did not take back."""
        own = [drawn.n for drawn in self.things() if drawn.id == participant]
        return max(own, default=None)
