"""What a distribution tag is: its name, its attributes, and the patterns that match it. Pure values.

A name is a path of one or more segments (`lab/bench1/temp`). In a pattern `*` stands for exactly one segment and
`**`, as the last or any other whole segment, for any number of them, none included. Names that begin with `@` are
the system's own and only a pattern that begins with `@` matches them.
"""

from __future__ import annotations

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
    at: str = ""
    """Where subscribers' proxies sit unless they say otherwise; '' is at the publisher."""
    transport: str = ""
    """What carries the tag to other nodes unless subscribers say otherwise; '' is the default for what they ask."""
    priority: str = ""
    """How urgent its channels are unless subscribers say otherwise (`ringcast.model.priority`); '' is normal."""


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
    import hashlib  # OpenSSL comes with it; no client asks

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


def overlap(one: str, other: str) -> bool:
    """Whether some tag could be selected by both patterns. Takes at most len(one) x len(other) steps."""
    if not is_pattern(one) or not is_pattern(other):
        return matches(one, other) or matches(other, one)
    if one.startswith("@") != other.startswith("@"):
        return False  # a pattern that does not say '@' selects no tag of the system
    return _overlap(_segments(one), _segments(other))


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    # fits[j]: the segments of `one` seen so far have a tag in common with the first j of `other`.
    fits = [True] + [False] * len(other)
    for j, segment in enumerate(other):
        fits[j + 1] = fits[j] and segment == "**"
    for mine in one:
        before, fits = fits, [False] * (len(other) + 1)
        fits[0] = before[0] and mine == "**"
        for j, theirs in enumerate(other):
            same = mine == theirs or "*" in (mine, theirs)
            fits[j + 1] = (
                (before[j] and same)
                or (mine == "**" and (before[j + 1] or fits[j]))
                or (theirs == "**" and (fits[j] or before[j + 1]))
            )
    return fits[-1]


def covers(pattern: str, other: str) -> bool:
    """Whether `pattern` surely selects whatever `other` selects. Some pairs for which that is true are not seen, as
    `**/*` and `*/**`: then the answer is no. Takes at most len(pattern) x len(other) steps."""
    if not is_pattern(other):
        return matches(pattern, other)
    if other.startswith("@") and not pattern.startswith("@"):
        return False
    return _covers(_segments(pattern), _segments(other))


def _covers(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    # within[j]: the segments of `mine` after those seen so far cover what follows the first j of `theirs`.
    within = [False] * len(theirs) + [True]
    for segment in reversed(mine):
        after, within = within, [False] * (len(theirs) + 1)
        within[-1] = after[-1] and segment == "**"
        for j in reversed(range(len(theirs))):
            if segment == "**":
                within[j] = after[j] or within[j + 1]
            else:
                within[j] = after[j + 1] and theirs[j] != "**" and segment in ("*", theirs[j])
    return within[0]
