"""One node's rows as some node knows them: versions, tombstones, and how copies of them converge. Pure.

The owner numbers its writes 1, 2, 3...; of a key only the newest entry is kept. A copy knows which spans of versions
it has seen (`through` is the end of the unbroken one), so deltas may be lost, repeated and reordered: whatever set of
them arrived, in whatever order, the copy is the same (scuttlebutt reconciliation, with the spans added).

Tombstones beyond a bound are forgotten, oldest first. `floor` is the newest version so forgotten: a peer that is
behind it is given everything from the start, and completeness of a delta tells it what is gone.
"""

from __future__ import annotations

from ringcast.daemon.rows import Delta, Entry, Row

MAX_SPANS = 64


class Replica:
    """Rows of `node`, in the life (`incarnation`) it leads."""

    def __init__(self, node: str, incarnation: int, max_tombstones: int) -> None:
        self.node = node
        self.incarnation = incarnation
        self.through = 0
        self.floor = 0
        self._entries: dict[str, Entry] = {}
        self._tombstones = 0
        self._max_tombstones = max_tombstones
        self._spans: list[tuple[int, int]] = []  # seen beyond `through`, disjoint and sorted

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
        entries = sorted(
            (entry for entry in self._entries.values() if since < entry.version <= self.through),
            key=lambda entry: entry.version,
        )
        through = self.through
        if max_entries is not None and len(entries) > max_entries:
            entries = entries[:max_entries]
            through = entries[-1].version
        return Delta(
            node=self.node, incarnation=self.incarnation, since=since, through=through, floor=self.floor,
            entries=entries,
        )  # fmt: skip

    def merge(self, delta: Delta) -> dict[str, tuple[Row | None, Row | None]]:
        """Take in a delta of the same incarnation; returns {key: (row before, row after)} of what may have changed."""
        touched: dict[str, tuple[Row | None, Row | None]] = {}
        named = {entry.key for entry in delta.entries}
        for key, entry in list(self._entries.items()):
            if delta.since < entry.version <= delta.through and key not in named:
                touched[key] = (entry.row, None)
                self._discard(key)
        for entry in delta.entries:
            known = self._entries.get(entry.key)
            if known is not None and known.version >= entry.version:
                continue
            if known is None and self._seen(entry.version):
                continue  # superseded by something whose tombstone is forgotten
            touched[entry.key] = (known.row if known else None, entry.row)
            self._store(entry)
        if delta.since < delta.floor:
            self.floor = max(self.floor, delta.floor)
        self._see(delta.since, delta.through)
        self._forget_tombstones()
        return touched

    def _store(self, entry: Entry) -> None:
        self._discard(entry.key)
        self._entries[entry.key] = entry
        self._tombstones += entry.row is None

    def _discard(self, key: str) -> None:
        known = self._entries.pop(key, None)
        if known is not None:
            self._tombstones -= known.row is None

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
