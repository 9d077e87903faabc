"""What a tag's attributes may be, and when two users of a tag disagree. Pure.

Only what the caller named is compared: a program that says nothing about depth joins a tag of any depth. Whether a
codec exists is for the client to check; the daemon never touches data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ringcast.errors import QosMismatch, TagConflict
from ringcast.model import priority
from ringcast.model.place import AUTO, check_place
from ringcast.model.tag import TagAttributes

MAX_DEPTH = 2**24
MAX_CAPACITY_BYTES = 2**40
MAX_WAIT_S = 3600.0
MAX_CODEC_CHARS = 64
MAX_TRANSPORT_CHARS = 255
MAX_PLACE_CHARS = 255
# Attributes travel inside notices and listings of one packet each, nested a little deeper than they came.
MAX_SCHEMA_BYTES = 32 * 1024
MAX_SCHEMA_NESTING = 32


def resolve(name: str, requested: dict[str, Any], existing: TagAttributes | None) -> TagAttributes:
    """The attributes of tag `name` for a caller who named `requested`.

    Raises QosMismatch (unknown attribute, wrong type, out of range), TagConflict (exists with another value).
    """
    for attribute, value in requested.items():
        _check(attribute, value)
    if existing is None:
        return TagAttributes(**requested)
    for attribute, value in requested.items():
        held = getattr(existing, attribute)
        if held != value:
            raise TagConflict(name, attribute, held, value)
    return existing


def check_geometry(depth: int, capacity_bytes: int) -> None:
    """Raises QosMismatch when no ring can be that large."""
    _check("depth", depth)
    _check("capacity_bytes", capacity_bytes)


def _check(attribute: str, value: object) -> None:
    if attribute not in _RULES:
        known = ", ".join(_RULES)
        asked = f"{attribute[:40]}={_shown(value)}"
        raise QosMismatch(asked, "a tag has no such attribute", f"the attributes are {known}")
    good, expected = _RULES[attribute]
    if not good(value):
        remedy = "give such a value, or leave it out"
        raise QosMismatch(f"{attribute}={_shown(value)}", f"{attribute} must be {expected}", remedy)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_WAIT_S


def _place(value: object) -> bool:
    if not isinstance(value, str) or len(value) > MAX_PLACE_CHARS or value == AUTO:
        return False
    try:
        return value == "" or bool(check_place(value))
    except ValueError:
        return False


def is_priority(value: object) -> bool:
    """Whether the words can be read; none at all can."""
    try:
        return isinstance(value, str) and bool(priority.read(value))
    except ValueError:
        return False


def _schema(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return False
    return _nesting(value) <= MAX_SCHEMA_NESTING and len(msgspec.msgpack.encode(value)) <= MAX_SCHEMA_BYTES


def _nesting(value: object) -> int:
    depth = 0
    level = [value]
    while level and depth <= MAX_SCHEMA_NESTING:
        depth += 1
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list | tuple):
                inner.extend(item)
        level = inner
    return depth


_RULES: dict[str, tuple[Callable[[object], bool], str]] = {
    "codec": (
        lambda v: isinstance(v, str) and 0 < len(v) <= MAX_CODEC_CHARS,
        f"the name of a codec, of at most {MAX_CODEC_CHARS} characters",
    ),
    "schema": (
        _schema,
        f"a JSON schema of at most {MAX_SCHEMA_BYTES} bytes and {MAX_SCHEMA_NESTING} levels, or None",
    ),
    "depth": (lambda v: _whole(v, 1, MAX_DEPTH), f"a whole number from 1 to {MAX_DEPTH}"),
    "capacity_bytes": (lambda v: _whole(v, 1, MAX_CAPACITY_BYTES), f"a whole number from 1 to {MAX_CAPACITY_BYTES}"),
    "max_wait_s": (_seconds, f"a number of seconds from 0 to {MAX_WAIT_S:g}"),
    "prefault": (lambda v: isinstance(v, bool), "True or False"),
    "at": (_place, "'publisher', 'subscriber' or 'node:NAME', or empty"),
    "transport": (
        lambda v: isinstance(v, str) and len(v) <= MAX_TRANSPORT_CHARS,
        f"the name of a transport, of at most {MAX_TRANSPORT_CHARS} characters, or empty",
    ),
    "priority": (is_priority, f"{priority.EXPECTED}, or empty"),
}
