"""What the gateway says to a page, as JSON. Pure.

Numbers that JavaScript's doubles cannot hold (incarnations, the ids of tags, times in nanoseconds) are strings of
digits, always; `ringcast.js` makes BigInts of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ringcast.errors import NotAllowed, RingcastError
from ringcast.model.identity import Presence, PublisherInfo
from ringcast.model.tag import TagAttributes

_LARGE = ("incarnation", "tag_id")
_encode = msgspec.json.Encoder().encode
MAX_SENTENCE = 2000


def _portable(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {str(name): _portable(item, str(name)) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_portable(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and (key.endswith("_ns") or key in _LARGE):
        return str(value)
    return value


def row(thing: Any) -> Any:
    """A status or an identity as the page sees it."""
    found = msgspec.to_builtins(thing)
    if isinstance(found, dict) and "attributes" in found and "id" in found:
        found["tag_id"] = found.pop("id")
    return _portable(found)


def welcome(id: int, node: str, token: str, resumed: bool, beat_s: float, limits: Mapping[str, float]) -> bytes:
    return _encode({
        "op": "welcome", "id": id, "node": node, "token": token, "resumed": resumed, "beat_s": beat_s, "limits": limits,
    })  # fmt: skip


def done(id: int, **found: Any) -> bytes:
    return _encode({"op": "done", "id": id, **found})


def pulled(id: int, count: int, unanswered: Sequence[str]) -> bytes:
    """All that the request pulled has been sent, in frames before this."""
    return _encode({"op": "pulled", "id": id, "count": count, "unanswered": unanswered})


def error(id: int | None, exc: BaseException) -> bytes:
    """`id` is None for what belongs to no request."""
    return _encode({"op": "error", "id": id, **_told(exc)})


def failed(stream: int, exc: BaseException, ended: bool) -> bytes:
    """A subscription or one message of it failed; with `ended` nothing more will come on it."""
    return _encode({"op": "failed", "subscription": stream, "ended": ended, **_told(exc)})


def refused(publisher: int, number: int, exc: BaseException) -> bytes:
    """A message that a page published was not sent."""
    return _encode({"op": "refused", "publisher": publisher, "number": number, **_told(exc)})


def _told(exc: BaseException) -> dict[str, str]:
    if isinstance(exc, NotAllowed):  # by the gateway or by the daemon: that is the same to a page
        return {"error": "NotAllowed", "message": str(exc)[:MAX_SENTENCE]}
    kind = type(exc).__name__ if isinstance(exc, (RingcastError, TimeoutError, ValueError, TypeError)) else "Error"
    return {"error": kind, "message": str(exc)[:MAX_SENTENCE]}


def source(number: int, info: PublisherInfo, attributes: TagAttributes) -> bytes:
    """Messages that say `number` are of this publisher."""
    return _encode({
        "op": "source", "source": number, "publisher": row(info), "codec": attributes.codec,
        "schema": attributes.schema,
    })  # fmt: skip


def presence(watch: int, what: Presence) -> bytes:
    return _encode({"op": "presence", "watch": watch, "presence": row(what), "text": str(what)})


def paced(stream: int, every: int) -> bytes:
    """The page is behind: of that stream it gets the messages whose number is a multiple of `every` for now."""
    return _encode({"op": "paced", "subscription": stream, "every": every})


def beat(lost: Mapping[int, int], held: bool) -> bytes:
    """I am there. `lost`: totals of streams whose total changed. `held`: the page sends more than it may, and is read
    as slowly as the limit says."""
    said: dict[str, Any] = {"op": "beat"}
    if lost:
        said["lost"] = {str(stream): total for stream, total in lost.items()}
    if held:
        said["held"] = True
    return _encode(said)
