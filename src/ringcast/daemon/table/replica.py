"""One node's rows as some node knows them: versions, tombstones, and how copies of them converge. Pure.

The owner numbers its writes 1, 2, 3...; of a key only the newest entry is kept. A copy knows which spans of versions
it has seen (`through` is the end of the unbroken one), so deltas may be lost, repeated and reordered: whatever set of
them arrived, in whatever order, the copy is the same (scuttlebutt reconciliation, with the spans added).

Tombstones beyond a bound are forgotten, oldest first. `floor` is the newest version so forgotten: a peer that is
behind it is given everything from the start, and completeness of a delta tells it what is gone.
"""

from __future__ import annotations

import itertools
from collections import Counter

from ringcast.control.limits import MAX_PUBLISHERS_PER_NODE, MAX_SUBSCRIBERS_PER_NODE, MAX_TAGS_PER_NODE
from ringcast.daemon.table.rows import Delta, Entry, PublisherRow, Row, SubscriberRow, TagRow

MAX_SPANS = 64
MAX_ROWS: dict[type[Row], int] = {
    TagRow: MAX_TAGS_PER_NODE, PublisherRow: MAX_PUBLISHERS_PER_NODE, SubscriberRow: MAX_SUBSCRIBERS_PER_NODE
}  # fmt: skip
"""Of one node, in a copy; more are left out and counted."""


class Replica:
    """Rows of `node` with start number `incarnation`."""

    def __init__(self, node: str, incarnation: int, max_tombstones: int) -> None:
        self.node = node
        self.incarnation = incarnation
        self.through = 0
        self.floor = 0
        self._entries: dict[str, Entry] = {}  # in the order of their versions, as long as `_in_order`
        self._in_order = True
        self._newest = 0
        self._tombstones = 0
        self._kinds: Counter[type[Row]] = Counter()
        self._left_out = 0
        self._max_tombstones = max_tombstones
        self._spans: list[tuple[int, int]] = []  # seen beyond `through`, disjoint and sorted

    def __len__(self) -> int:
        return len(self._entries) - self._tombstones

    def count(self, kind: type[Row]) -> int:
        return self._kinds[kind]

    def row(self, key: str) -> Row | None:
        entry = self._entries.get(key)
        return entry.row if entry else None

    def rows(self) -> dict[str, Row]:
        return {key: entry.row for key, entry in self._entries.items() if entry.row is not None}

    # ------------------------------------------------------------------ the owner writes

    def write(self, key: str, row: Row | None) -> None:
        """Put a row, or with None its tombstone. Only on the owner's own copy."""
        self.through += 1
        self._store(Entry(key, self.through, row))
        self._forget_tombstones()

    # ------------------------------------------------------------------ copies converge

    def delta(self, since: int | None, max_entries: int | None = None) -> Delta | None:
        """What a copy that is at `since` lacks, or None. A copy that knows nothing of this incarnation is at None.

        `max_entries` cuts it to the oldest so many, except where everything must be given anew: half of that would
        leave the copy behind the floor again.
        """
        if since is None:
            since = 0  # and even nothing is news: it replaces the rows of an earlier life
        elif since >= self.through:
            return None
        if since < self.floor:
            since, max_entries = 0, None
        entries = [entry for entry in self._after(since) if entry.version <= self.through]
        through = self.through
        if max_entries is not None and len(entries) > max_entries:
            entries = entries[:max_entries]
            through = entries[-1].version
        return Delta(
            node=self.node, incarnation=self.incarnation, since=since, through=through, floor=self.floor,
            entries=entries,
        )  # fmt: skip

    def merge(self, delta: Delta, room: int | None = None) -> dict[str, tuple[Row | None, Row | None]]:
        """Take in a delta of the same incarnation; returns {key: (row before, row after)} of what may have changed.

        Rows beyond what one node may own, or beyond `room` new ones, are left out (`take_left_out`).
        """
        touched: dict[str, tuple[Row | None, Row | None]] = {}
        if delta.since > self.through and self._tombstones > 2 * self._max_tombstones:
            # Tombstones beyond a gap cannot be forgotten before it is filled. What comes after it comes again.
            self._left_out += len(delta.entries)
            return touched
        named = {entry.key for entry in delta.entries}
        for entry in self._after(delta.since):
            if entry.version <= delta.through and entry.key not in named:
                touched[entry.key] = (entry.row, None)
                self._discard(entry.key)
        for entry in delta.entries:
            known = self._entries.get(entry.key)
            if known is not None and known.version >= entry.version:
                continue
            if known is None and self._seen(entry.version):
                continue  # superseded by something whose tombstone is forgotten
            before = known.row if known else None
            if not self._has_room(before, entry, room):
                self._left_out += 1
                continue
            if room is not None:
                room += (before is not None) - (entry.row is not None)
            touched[entry.key] = (before, entry.row)
            self._store(entry)
        if delta.since < delta.floor:
            self.floor = max(self.floor, delta.floor)
        self._see(delta.since, delta.through)
        self._forget_tombstones()
        return touched

    def take_left_out(self) -> int:
        """How many rows were left out since this was asked last."""
        count, self._left_out = self._left_out, 0
        return count

    def _has_room(self, before: Row | None, entry: Entry, room: int | None) -> bool:
        if entry.row is None:
            return True
        kind = type(entry.row)
        if type(before) is not kind and self._kinds[kind] >= MAX_ROWS[kind]:
            return False
        return before is not None or room is None or room > 0

    def _after(self, version: int) -> list[Entry]:
        """Entries newer than that, oldest first; takes as long as there are such, not as long as there are any."""
        if not self._in_order:
            by_version = sorted(self._entries.values(), key=lambda entry: entry.version)
            self._entries = {entry.key: entry for entry in by_version}
            self._in_order = True
        found = list(itertools.takewhile(lambda entry: entry.version > version, reversed(self._entries.values())))
        return found[::-1]

    def _store(self, entry: Entry) -> None:
        self._discard(entry.key)
        self._in_order &= entry.version > self._newest
        self._newest = max(self._newest, entry.version)
        self._entries[entry.key] = entry
        self._tombstones += entry.row is None
        if entry.row is not None:
            self._kinds[type(entry.row)] += 1

    def _discard(self, key: str) -> None:
        known = self._entries.pop(key, None)
        if known is not None:
            self._tombstones -= known.row is None
            if known.row is not None:
                self._kinds[type(known.row)] -= 1

    def _seen(self, version: int) -> bool:
        return version <= self.through or any(first < version <= last for first, last in self._spans)

    def _see(self, since: int, through: int) -> None:
        spans = sorted([*self._spans, (since, through)])
        self._spans = []
        for first, last in spans:
            if first <= self.through:
                self.through = max(self.through, last)
            elif self._spans and first <= self._spans[-1][1]:
                self._spans[-1] = (self._spans[-1][0], max(self._spans[-1][1], last))
            else:
                self._spans.append((first, last))
        # A dropped span is only forgotten knowledge: the digest claims less, and the entries come again.
        del self._spans[MAX_SPANS:]

    def _forget_tombstones(self) -> None:
        if self._tombstones <= self._max_tombstones:
            return
        old = sorted(
            (entry for entry in self._entries.values() if entry.row is None and entry.version <= self.through),
            key=lambda entry: entry.version,
        )
        for entry in old[: max(0, self._tombstones - self._max_tombstones // 2)]:
            self.floor = max(self.floor, entry.version)
            self._discard(entry.key)
