"""What a distribution tag is: its name, its attributes, and the patterns that match it. Pure values.

A name is a path of one or more segments (`lab/bench1/temp`). In a pattern `*` stands for exactly one segment and
`**`, as the last or any other whole segment, for any number of them, none included. Names that begin with `@` are
the system's own and only a pattern that begins with `@` matches them.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Any

import msgspec

from ringcast.errors import BadTagName

MAX_NAME_BYTES = 255
DEFAULT_DEPTH = 4096
DEFAULT_CAPACITY_BYTES = 4 * 1024 * 1024
DEFAULT_MAX_WAIT_S = 0.1

_SEGMENT = re.compile(r"@?[A-Za-z0-9_.:+=~-]+")


class TagAttributes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a tag's users have agreed on."""

    codec: str = "bytes"
    schema: dict[str, Any] | None = None
    depth: int = DEFAULT_DEPTH
    capacity_bytes: int = DEFAULT_CAPACITY_BYTES
    max_wait_s: float = DEFAULT_MAX_WAIT_S
    prefault: bool = False
    proxy: str = ""
    """Where subscribers' proxies sit unless they say otherwise; '' is at the publisher."""
    transport: str = ""
    """What carries the tag to other nodes unless subscribers say otherwise; '' is the default for what they ask."""


def check_name(name: str) -> str:
    """Return `name` when it can be a tag's. Raises BadTagName."""
    _check(name, wild=False)
    return name


def check_pattern(pattern: str) -> str:
    """Return `pattern` when it can select tags; a plain name is a pattern too. Raises BadTagName."""
    _check(pattern, wild=True)
    return pattern


def is_pattern(name: str) -> bool:
    return "*" in name


def tag_id(name: str) -> int:
    """The tag's number: the same on every node, without asking anyone."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1


def matches(pattern: str, name: str) -> bool:
    """Whether `pattern` selects the tag `name`. Takes at most len(pattern) x len(name) steps, whatever the pattern."""
    if pattern == name:
        return True
    if "*" not in pattern or (name.startswith("@") and not pattern.startswith("@")):
        return False
    return _matches(_segments(pattern), name.split("/"))


def _check(name: str, *, wild: bool) -> None:
    if not isinstance(name, str):
        raise BadTagName(repr(name), "it must be a string")
    if not name:
        raise BadTagName(name, "it is empty")
    if len(name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise BadTagName(name[:40] + "...", f"it is longer than {MAX_NAME_BYTES} bytes")
    for segment in name.split("/"):
        if not segment:
            raise BadTagName(name, "it has an empty segment")
        if "*" in segment:
            if not wild:
                raise BadTagName(name, "only subscriptions may use '*'")
            if segment not in ("*", "**"):
                raise BadTagName(name, "'*' and '**' must be whole segments")
        elif not _SEGMENT.fullmatch(segment):
            raise BadTagName(name, f"segment {segment!r} may hold letters, digits and _ . : + = ~ - only")


@lru_cache(maxsize=1024)
def _segments(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("/"))


def _matches(pattern: tuple[str, ...], name: list[str]) -> bool:
    # Only the last '**' seen is ever retried, which is enough for a glob and cannot explode as a regular expression
    # does: patterns come from clients, and the daemon matches them in its only thread.
    at = begin = 0
    star = -1
    for_name = 0
    while for_name < len(name):
        if at < len(pattern) and pattern[at] == "**":
            star, begin = at, for_name
            at += 1
        elif at < len(pattern) and pattern[at] in ("*", name[for_name]):
            at += 1
            for_name += 1
        elif star >= 0:
            begin += 1
            at, for_name = star + 1, begin
        else:
            return False
    return all(segment == "**" for segment in pattern[at:])
