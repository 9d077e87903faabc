"""Values on the control tag: who is here with which media, and the game's moves. Pure.

`page/together.js` is the same in JavaScript. Order of arrival never matters to what is shown: everybody who has
received the same values sees the same.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

AWAY_MS = 6_000
"""Who said nothing for so long is shown no more."""
SAID_EVERY_MS = 2_000
MOST_NAME = 60

Medium = Literal["audio", "video", "whiteboard", "chat", "control"]
Number = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
Coordinate = Annotated[int, Meta(ge=0, le=10_000)]


class BadValue(ValueError):
    """What came on a tag of the conference is not what belongs there."""


class Here(msgspec.Struct, frozen=True, kw_only=True, tag="here", tag_field="do"):
    """Said when something changes and every `SAID_EVERY_MS`. `streams` are the incarnations of the participant's
    publishers by medium, as text: a message of that publisher is this participant's."""

    id: Number
    name: Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
    publishes: list[Medium]
    subscribes: list[Medium]
    streams: dict[str, str] = {}
    node: str = ""
    talks: bool = False
    """Louder than silence a moment ago: who hears only some chooses by it."""


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag="gone", tag_field="do"):
    id: Number


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", tag_field="do"):
    """`at` is the owner's clock in milliseconds."""

    id: Number
    game: Number
    seed: Number
    at: int
    seconds: Annotated[int, Meta(ge=1, le=600)]
    shots: Annotated[int, Meta(ge=1, le=1000)]


class Fire(msgspec.Struct, frozen=True, kw_only=True, tag="fire", tag_field="do"):
    id: Number
    game: Number
    n: Number


class State(msgspec.Struct, frozen=True, kw_only=True, tag="state", tag_field="do"):
    """The owner's word: where the sight is, and how it stands. `elapsed` are milliseconds since the start."""

    id: Number
    game: Number
    elapsed: Annotated[int, Meta(ge=0)]
    x: Coordinate
    y: Coordinate
    score: Annotated[int, Meta(ge=0)]
    shots: Annotated[int, Meta(ge=0)]
    over: bool
    last_by: Number = 0
    last_hit: bool = False


Control = Here | Gone | Start | Fire | State
_DECODER: msgspec.json.Decoder[Control] = msgspec.json.Decoder(Control)


def read_untrusted(data: bytes) -> Control:
    """Raises BadValue."""
    try:
        return _DECODER.decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError) as exc:
        raise BadValue(f"nothing that belongs on the control tag: {exc}") from exc


class Roll:
    """Who is here."""

    def __init__(self) -> None:
        self._here: dict[int, tuple[Here, int]] = {}

    def take(self, value: Here | Gone, now_ms: int) -> None:
        if isinstance(value, Gone):
            self._here.pop(value.id, None)
        else:
            self._here[value.id] = value, now_ms

    def here(self, now_ms: int) -> list[Here]:
        self._here = {key: found for key, found in self._here.items() if now_ms - found[1] < AWAY_MS}
        return sorted((here for here, _ in self._here.values()), key=lambda here: (here.name, here.id))
