"""Text chat: lines, in the order of writing, each once."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ringcast.conference.presence import MOST_NAME, BadValue, Number

MOST_TEXT = 2000
MOST_LINES = 1000


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """`at` is the writer's clock in milliseconds, `n` the writer's count."""

    id: Number
    n: Number
    at: int
    name: Annotated[str, Meta(max_length=MOST_NAME)]
    text: Annotated[str, Meta(min_length=1, max_length=MOST_TEXT)]


_DECODER = msgspec.json.Decoder(Line)


def read_untrusted(data: bytes) -> Line:
    """Raises BadValue."""
    try:
        return _DECODER.decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        raise BadValue(f"not a line of text: {exc}") from exc


class Chat:
    """Keeps the newest `MOST_LINES`."""

    def __init__(self) -> None:
        self._lines: dict[tuple[int, int], Line] = {}

    def take(self, line: Line) -> bool:
        """False when it was there already."""
        if (line.id, line.n) in self._lines:
            return False
        self._lines[line.id, line.n] = line
        if len(self._lines) > MOST_LINES:
            oldest = min(self._lines.values(), key=_order)
            del self._lines[oldest.id, oldest.n]
        return True

    def lines(self) -> list[Line]:
        return sorted(self._lines.values(), key=_order)


def _order(line: Line) -> tuple[int, int, int]:
    return line.at, line.id, line.n
