"""What a page asks for, as JSON: `{"op": "subscribe", "id": 3, ...}`. Pure values.

Every request has an `id` of the page's choosing, and gets one answer with that id: `done`, `pulled` or `error`. Numbers
of publishers, subscriptions and watches are the page's too; each may be used once in the life of a page.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ringcast.errors import BadMessage
from ringcast.model.identity import PresenceKind
from ringcast.model.options import Start

VERSION = 1
Number = int


class Request(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="op"):
    id: int


class Hello(Request, tag="hello"):
    """First of all. `token` names the page that this connection was before, and `received` how many messages of each
    stream had come by then."""

    version: int
    token: str = ""
    received: dict[int, int] = {}


class Beat(msgspec.Struct, tag_field="op", tag="beat"):
    """The page's answer to the gateway's `beat`; the only one that is not answered."""


class OpenTag(Request, tag="tag"):
    """Create the tag, or join it. `options` are those of `session.tag` in Python."""

    name: str
    options: dict[str, Any] = {}


class Publish(Request, tag="publish"):
    publisher: Number
    tag: str
    on_slow: Literal["raise", "skip"] = "raise"


class Unpublish(Request, tag="unpublish"):
    publisher: Number


class Subscribe(Request, tag="subscribe"):
    """Options are those of `session.subscribe`. `priority` orders the streams of this page while it is behind: higher
    ones are sent first, and lower ones are left out first. `urgency` is the class of the channels that carry the tag
    from other nodes to this one; '' is the tag's. `only`: of these publishers, by incarnation; of all when it
    is empty."""

    subscription: Number
    pattern: str
    start: Literal["new", "latest", "earliest"] | int | dict[int, int] = "new"
    reliable: bool = False
    every: int = 1
    rate_hz: float | None = None
    size: tuple[int, int] | None = None
    at: str = "auto"
    transport: str = ""
    ordered: bool = True
    priority: int = 0
    urgency: Literal["", "low", "normal", "high", "critical"] = ""
    only: list[str] = []

    def begins(self) -> Start:
        return self.start


class Unsubscribe(Request, tag="unsubscribe"):
    subscription: Number


class Move(Request, tag="move"):
    subscription: Number
    at: str | None = None
    transport: str | None = None


class Pull(Request, tag="pull"):
    """One pull of a history. `what` and its arguments are those of `History` in Python."""

    tag: str
    what: Literal["latest", "at", "range", "since", "before", "between", "bounds"]
    arguments: list[int | str] = []
    depth: int | None = None
    publisher: str | None = None
    at: str | None = None
    every: int = 1
    size: tuple[int, int] | None = None


class List(Request, tag="list"):
    """`pattern` is of tags, or the one tag whose publishers or subscribers are listed."""

    what: Literal["tags", "nodes", "channels", "publishers", "subscribers"] = "tags"
    pattern: str = "**"


class Watch(Request, tag="watch"):
    watch: Number
    pattern: str = "**"
    kinds: tuple[PresenceKind, ...] = ("node", "publisher", "subscriber")


class Unwatch(Request, tag="unwatch"):
    watch: Number


AnyRequest = (
    Hello | OpenTag | Publish | Unpublish | Subscribe | Unsubscribe | Move | Pull | List | Watch | Unwatch
)  # fmt: skip
_DECODER: msgspec.json.Decoder[AnyRequest | Beat] = msgspec.json.Decoder(AnyRequest | Beat)
_ID = msgspec.json.Decoder(dict[str, Any])


class Misasked(BadMessage):
    """A request that cannot be understood; `id` is its own, if that much could be read."""

    def __init__(self, reason: str, id: int | None) -> None:
        super().__init__(reason)
        self.id = id


def parse_untrusted(text: str | bytes) -> AnyRequest | Beat:
    """What a page asks. Raises Misasked, and nothing else, for whatever text."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        raise Misasked(f"not a request of the gateway's protocol: {exc}", _id_of(text)) from None


def _id_of(text: str | bytes) -> int | None:
    try:
        found = _ID.decode(text).get("id")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
