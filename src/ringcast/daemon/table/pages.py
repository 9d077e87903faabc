"""Changes of the tag table as bytes of bounded size, and back. Pure.

A delta is complete within its span of versions, so cutting the span gives deltas that are complete within theirs:
pages may be lost, repeated and reordered as deltas may. What came off the network is untrusted; decoding raises
BadMessage and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ringcast.control.limits import MAX_LIFE, MAX_VERSION
from ringcast.control.peering import NAME_PATTERN
from ringcast.daemon.table.rows import Delta, Entry
from ringcast.errors import BadMessage

PAGE_BYTES = 32 * 1024
_DELTA_BYTES = 160
"""More than a delta takes beside its entries."""

_NAME = re.compile(NAME_PATTERN)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Delta])


class Page(NamedTuple):
    """`covers` is {node: (life, version)} of what one who has the page knows, if it knew all before."""

    content: bytes
    covers: dict[str, tuple[int, int]]


def cut(deltas: Iterable[Delta], page_bytes: int = PAGE_BYTES) -> list[Page]:
    """Pages of about so many bytes at most; a single larger row has a page to itself."""
    pages: list[Page] = []
    held: list[Delta] = []
    room = page_bytes
    for delta in deltas:
        for part, size in _parts(delta, page_bytes):
            if held and size > room:
                pages.append(_page(held))
                held, room = [], page_bytes
            held.append(part)
            room -= size
    if held:
        pages.append(_page(held))
    return pages


def decode_page_untrusted(content: bytes) -> list[Delta]:
    """Raises BadMessage, also when a node speaks for another: nothing may be withdrawn on account of a bad page."""
    try:
        deltas = _decoder.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError, ValueError) as exc:
        raise BadMessage(str(exc)) from exc
    for delta in deltas:
        if not _NAME.fullmatch(delta.node):
            raise BadMessage(f"{delta.node[:80]!r} is no node's name")
        versions = (delta.since, delta.through, delta.floor, *(entry.version for entry in delta.entries))
        if not 0 <= delta.incarnation <= MAX_LIFE or not all(0 <= number <= MAX_VERSION for number in versions):
            raise BadMessage(f"a number out of range in a delta of node {delta.node!r}")
        if not delta.since <= delta.through or not all(_belongs(entry, delta) for entry in delta.entries):
            raise BadMessage(f"node {delta.node!r} speaks of rows that are not its, or not of this span")
    return deltas


def _belongs(entry: Entry, delta: Delta) -> bool:
    if not delta.since < entry.version <= delta.through:
        return False
    return entry.row is None or (entry.row.owner == delta.node and entry.row.key == entry.key)


def _parts(delta: Delta, page_bytes: int) -> Iterable[tuple[Delta, int]]:
    """The delta in pieces with their sizes."""
    entries: list[Entry] = []
    since, size = delta.since, _DELTA_BYTES
    for entry in delta.entries:
        more = len(_encoder.encode(entry))
        if entries and size + more > page_bytes:
            through = entries[-1].version
            yield msgspec.structs.replace(delta, since=since, through=through, entries=entries), size
            entries, since, size = [], through, _DELTA_BYTES
        entries.append(entry)
        size += more
    yield msgspec.structs.replace(delta, since=since, entries=entries), size


def _page(deltas: list[Delta]) -> Page:
    covers = {delta.node: (delta.incarnation, delta.through) for delta in deltas}
    return Page(_encoder.encode(deltas), covers)
