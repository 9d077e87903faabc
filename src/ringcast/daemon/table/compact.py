"""Rows of other nodes in little memory: what is equal in many of them is held once. Pure.

A decoder makes new objects for every row: the node's name, the attributes that a hundred tags have in common, four
empty dictionaries. Invariant: a compact row equals the one it was made of. Nobody writes into what a row holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, Row, TagRow
from ringcast.model.tag import TagAttributes

MOST_SHARED = 1024
"""Values of which one object is held for all rows; what others say must not fill the memory."""
_NOTHING: dict[str, Any] = {}
_T = TypeVar("_T")


def compact(delta: Delta, held_name: Callable[[str], str]) -> Delta:
    """`held_name` returns the object that is already held of a tag's name, or the one it is given."""
    names: dict[str, str] = {}

    def name(text: str) -> str:
        return names.setdefault(text, held_name(text))

    entries = [
        Entry(entry.key, entry.version, _row(entry.row, name)) if entry.row is not None else entry
        for entry in delta.entries
    ]
    return replace(delta, entries=entries)


def _row(row: Row, name: Callable[[str], str]) -> Row:
    if isinstance(row, TagRow):
        return replace(
            row, name=name(row.name), primary=_one(row.primary), backup=_one(row.backup),
            attributes=_of_tag(row.attributes), settings=row.settings or _NOTHING, stamps=row.stamps or _NOTHING,
            placed=row.placed or _NOTHING, chosen=row.chosen or _NOTHING,
        )  # fmt: skip
    if isinstance(row, PublisherRow):
        sender = row.info
        return replace(
            row, depth=_one(row.depth), capacity_bytes=_one(row.capacity_bytes),
            info=replace(sender, node=_one(sender.node), tag=name(sender.tag), pid=_one(sender.pid),
                         user=_one(sender.user), program=_one(sender.program)),
        )  # fmt: skip
    receiver = row.info
    return replace(
        row, wanted=_one(row.wanted), transport=_one(row.transport),
        info=replace(receiver, node=_one(receiver.node), pattern=name(receiver.pattern), pid=_one(receiver.pid),
                     user=_one(receiver.user), program=_one(receiver.program)),
    )  # fmt: skip


def _of_tag(attributes: TagAttributes) -> TagAttributes:
    # One with a schema cannot be hashed.
    return _one(attributes) if attributes.schema is None else attributes


@lru_cache(maxsize=MOST_SHARED)
def _first(value: Any) -> Any:
    return value


def _one(value: _T) -> _T:
    """The object that equal ones were first seen as."""
    found: _T = _first(value)
    return found
