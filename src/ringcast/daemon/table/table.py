"""The tag table: every node's tags, publishers and subscribers, as this node sees them. Pure: no socket, clock, thread.

Each node writes its own rows only; copies converge by exchanging digests and deltas (`ringcast.daemon.table.replica`).
Invariant: the answers to queries are a function of the replicas of the nodes that are present, and every mutation
returns the changes it made to those answers, so that a shell can react without comparing tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ringcast.control.limits import (
    MAX_BORN,
    MAX_ROWS_OF_OTHERS,
    MAX_TAGS_PER_NODE,
    MAX_TERM,
    PLAUSIBLE_BORN,
    PLAUSIBLE_LIFE,
)
from ringcast.daemon.table.attributes import resolve
from ringcast.daemon.table.compact import compact
from ringcast.daemon.table.groups import Groups
from ringcast.daemon.table.matching import PatternIndex
from ringcast.daemon.table.replica import Replica
from ringcast.daemon.table.rows import (
    Change,
    ChangeKind,
    Declaration,
    Delta,
    PublisherRow,
    Row,
    SubscriberRow,
    TagRow,
    declaration_key,
    is_declaration,
)
from ringcast.errors import BadMessage, ResourceLimit, UnknownTag
from ringcast.model.place import Setting
from ringcast.model.tag import is_pattern, matches

Digest = dict[str, tuple[int, int]]
"""{node: (incarnation, version known without gaps)}"""

MAX_DESTROYED = 256
"""Destroyed tags of which a node reminds the others."""

_ID = tuple[str, int]
"""(owner, the number that it gave)"""


class TagTable:
    """The table of the node called `node`, with start number `incarnation` (larger than all before it)."""

    def __init__(self, node: str, incarnation: int, max_tombstones: int = 1024) -> None:
        self.node = node
        self._max_tombstones = max_tombstones
        self._own = Replica(node, incarnation, max_tombstones)
        self._replicas: dict[str, Replica] = {node: self._own}
        self._absent: set[str] = set()
        self._tags: Groups[str, TagRow] = Groups(lambda row: row.owner)
        self._orphans: dict[str, TagRow] = {}  # tags whose last row went, but were not destroyed
        self._destroyed: dict[str, None] = {}  # keys of this node's own, longest ago first
        self._seen: set[str] = set()  # names of tags that there are
        self._branches: Groups[str, str] = Groups(lambda name: name)  # tags and orphans by their first segment
        self._publishers: PatternIndex[_ID, PublisherRow] = PatternIndex(_id)
        self._subscribers: PatternIndex[_ID, SubscriberRow] = PatternIndex(_id)
        self._pulls: PatternIndex[_ID, SubscriberRow] = PatternIndex(_id)
        self._contested: set[str] = set()
        self._youngest = 0
        self._rows_of_others = 0
        self._believes: Callable[[Row], bool] = lambda row: True
        self.refused: Counter[str] = Counter()
        """What was not believed of others, by reason."""

    # ------------------------------------------------------------------ queries

    def tag(self, name: str) -> TagRow | None:
        """The row that counts for a tag: of several, the one born first, in its latest term."""
        held = self._tags.of(name)
        if len(held) == 1:  # as nearly always
            (row,) = held
            if not row.destroyed:
                return row
        rows = [row for row in held if not self.is_destroyed(row)]
        if not rows:
            return self._orphans.get(name)
        return min(rows, key=lambda row: (row.born, -row.term, row.owner))

    def is_destroyed(self, row: TagRow) -> bool:
        """Whether somebody destroyed that tag, rather than that its row is only not there."""
        return any(other.destroyed and other.born == row.born for other in self._tags.of(row.name))

    def rivals(self, name: str) -> list[TagRow]:
        """Rows of the tag, not destroyed, that do not count because another does."""
        counts = self.tag(name)
        return [
            row for row in self._tags.of(name) if row is not counts and not row.destroyed and not self.is_destroyed(row)
        ]

    def contested(self) -> list[str]:
        """The tags of which several nodes have rows."""
        return sorted(self._contested)

    def tags(self, pattern: str = "**") -> list[TagRow]:
        first = pattern.partition("/")[0]
        if not is_pattern(pattern):
            names: Iterable[str] = (pattern,)
        elif is_pattern(first):
            names = sorted({*self._tags, *self._orphans})
        else:
            names = sorted(self._branches.of(first))
        rows = (self.tag(name) for name in names if matches(pattern, name))
        return [row for row in rows if row is not None]

    def publishers(self, tag: str) -> list[PublisherRow]:
        """Who publishes on the tag, with the rings left behind (`alive` False)."""
        return self._publishers.exact(tag)

    def all_publishers(self) -> list[PublisherRow]:
        """Of every tag, the system's own too."""
        return list(self._publishers.items())

    def publishers_matching(self, pattern: str) -> list[PublisherRow]:
        """Who publishes on a tag that the pattern selects, with the rings left behind."""
        if not is_pattern(pattern):
            return self.publishers(pattern)
        return [row for row in self._publishers.items() if matches(pattern, row.info.tag)]

    def subscribers(self, tag: str) -> list[SubscriberRow]:
        """Whose pattern selects the tag."""
        return list(self._subscribers.matching(tag))

    def all_subscribers(self) -> list[SubscriberRow]:
        return list(self._subscribers.items())

    def pulls(self, tag: str) -> list[SubscriberRow]:
        """Pull clients of the tag that declared themselves."""
        return list(self._pulls.matching(tag))

    def declarations(self) -> list[Declaration]:
        """Of all nodes, those that came first before those that knew of them."""
        rows: list[Row] = [*self._publishers.items(), *self._subscribers.items(), *self._pulls.items()]
        return sorted((row for row in rows if is_declaration(row)), key=declaration_key)

    def next_since(self) -> int:
        """The logical time of a declaration that comes now."""
        return min(max((row.since for row in self.declarations()), default=0) + 1, MAX_BORN)

    def __len__(self) -> int:
        return len(self._seen)

    # ------------------------------------------------------------------ this node's own rows

    def open_tag(
        self, name: str, requested: dict[str, Any], create: bool = True, settings: dict[str, Setting] | None = None
    ) -> tuple[TagRow, list[Change]]:
        """Join the tag, or create it here, with these settings. Raises UnknownTag, TagConflict, QosMismatch,
        ResourceLimit."""
        known = self.tag(name)
        attributes = resolve(name, requested, known.attributes if known else None)
        if known is not None:
            return known, []
        if not create:
            raise UnknownTag(name)
        if not self.has_room:
            kept = f"node {self.node!r} keeps {MAX_TAGS_PER_NODE} tags already, and other nodes take in no more of it"
            raise ResourceLimit(kept, "destroy tags that nobody needs, or create this one on another node")
        born = max([self._youngest, *(row.born for row in self._tags.of(name))])
        row = TagRow(
            name=name, attributes=attributes, primary=self.node, born=min(born + 1, MAX_BORN), settings=settings or {}
        )
        return row, self.put(row)

    @property
    def has_room(self) -> bool:
        """Whether this node may keep another tag: its peers take in so many of one node."""
        return self._own.count(TagRow) < MAX_TAGS_PER_NODE

    def put(self, row: Row) -> list[Change]:
        """Write a row of this node, in place of the one with its key."""
        if row.owner != self.node:
            raise ValueError(f"{row.key} belongs to node {row.owner!r}, not to {self.node!r}")
        before = self._own.row(row.key)
        self._own.write(row.key, row)
        return self._show(before, row)

    def destroy(self, name: str) -> list[Change]:
        """Say that a tag of this node is no more. Rows of the same birth that turn up later do not bring it back."""
        row = self.tag(name)
        if row is None or row.owner != self.node:
            return []
        self._destroyed.pop(row.key, None)
        self._destroyed[row.key] = None
        changes = self.put(replace(row, destroyed=True, term=next_term(row)))
        while len(self._destroyed) > MAX_DESTROYED:
            oldest = next(iter(self._destroyed))
            del self._destroyed[oldest]
            if isinstance(known := self._own.row(oldest), TagRow) and known.destroyed:
                changes += self.remove(oldest)
        return changes

    def remove(self, key: str) -> list[Change]:
        """Withdraw a row of this node; nothing happens when there is none."""
        before = self._own.row(key)
        if before is None:
            return []
        self._own.write(key, None)
        return self._show(before, None)

    # ------------------------------------------------------------------ replication

    @property
    def incarnation(self) -> int:
        return self._own.incarnation

    def digest(self) -> Digest:
        return {node: (replica.incarnation, replica.through) for node, replica in self._replicas.items()}

    def delta(self, theirs: Digest, max_entries: int | None = None) -> list[Delta]:
        """What the sender of a digest lacks."""
        found = []
        for node, replica in self._replicas.items():
            incarnation, version = theirs.get(node, (-1, 0))
            if incarnation <= replica.incarnation:
                delta = replica.delta(version if incarnation == replica.incarnation else None, max_entries)
                if delta is not None:
                    found.append(delta)
        return found

    def apply(self, deltas: Iterable[Delta]) -> list[Change]:
        """Take in deltas: any of them, in any order, any number of times.

        Raises BadMessage, before anything changed, when a delta speaks for a node about rows that are not its own.
        """
        deltas = list(deltas)
        for delta in deltas:
            _check_untrusted(delta)
        changes: list[Change] = []
        for delta in deltas:
            changes += self._apply(delta)
        return changes

    def set_present(self, node: str, present: bool) -> list[Change]:
        """Hide or show a node's rows: membership decides who is there, what the node wrote is kept."""
        if present == (node not in self._absent):
            return []
        replica = self._replicas.get(node)
        rows = list(replica.rows().values()) if replica else []
        if present:
            self._absent.discard(node)
            return [change for row in rows for change in self._show(None, row)]
        changes = []
        for row in rows:
            changes += self._show(row, None)
        self._absent.add(node)
        return changes

    def orphans(self) -> list[TagRow]:
        """Tags whose node went, or gave them up for a row that is not here yet. They are seen as they were until
        somebody takes them over or they are given up."""
        return list(self._orphans.values())

    def give_up(self, name: str) -> list[Change]:
        """Nobody takes over an orphan: it is no longer seen, unless its node returns."""
        row = self._orphans.pop(name, None)
        self._file(name)
        return _difference(row, self.tag(name)) if row is not None else []

    def forget(self, node: str) -> None:
        """Keep nothing of an absent node: it will not be back, as far as anybody knows, or leads another life."""
        if node in self._absent:
            replica = self._replicas.pop(node, None)
            self._rows_of_others -= len(replica) if replica else 0
            self._absent.discard(node)

    def _apply(self, delta: Delta) -> list[Change]:
        if delta.node == self.node:
            # Peers remember a higher start number of this node, from a clock that was ahead: take a higher one.
            # But not an implausibly high one: no peer accepts rows with it before this node claims it.
            if delta.incarnation > max(PLAUSIBLE_LIFE, self._own.incarnation + 1):
                self.refused["implausible life"] += 1
            elif delta.incarnation > self._own.incarnation:
                self._own.incarnation = delta.incarnation + 1
            return []
        replica = self._replicas.get(delta.node)
        before: dict[str, Row] = {}
        if replica is None or replica.incarnation < delta.incarnation:
            before = replica.rows() if replica else {}
            replica = Replica(delta.node, delta.incarnation, self._max_tombstones)
            self._replicas[delta.node] = replica
        elif replica.incarnation > delta.incarnation:
            return []
        delta = compact(delta, self._held_name)
        room = MAX_ROWS_OF_OTHERS - self._rows_of_others + len(before)
        held = len(replica) + len(before)
        touched = {key: (row, None) for key, row in before.items()} | {
            key: (before.get(key, old), new) for key, (old, new) in replica.merge(delta, room).items()
        }
        self._rows_of_others += len(replica) - held
        self.refused["too many rows"] += replica.take_left_out()
        return [change for old, new in touched.values() for change in self._show(old, new)]

    # ------------------------------------------------------------------ what is seen

    def believe(self, believes: Callable[[Row], bool]) -> list[Change]:
        """From now on only those rows of other nodes are seen. All are kept, and passed on to others."""
        before, self._believes = self._believes, believes
        changes = []
        for node, replica in self._replicas.items():
            for row in replica.rows().values() if node != self.node and node not in self._absent else ():
                was, now = before(row), believes(row)
                if was != now:
                    changes += self._show_row(row if was else None, row if now else None)
        return changes

    def _show(self, old: Row | None, new: Row | None) -> list[Change]:
        if old is not None and old.owner != self.node and not self._believes(old):
            old = None
        if new is not None and new.owner != self.node and not self._believes(new):
            self.refused["row without a right"] += 1
            new = None
        return self._show_row(old, new)

    def _show_row(self, old: Row | None, new: Row | None) -> list[Change]:
        row = new if new is not None else old
        if row is None or row.owner in self._absent:
            return []
        if isinstance(row, TagRow):
            return self._show_tag(row.name, row.owner, new if isinstance(new, TagRow) else None)
        if isinstance(old, PublisherRow):
            self._publishers.discard(old.info.tag, _id(old))
        if isinstance(old, SubscriberRow):
            (self._pulls if old.pulls_s else self._subscribers).discard(old.info.pattern, _id(old))
        if isinstance(new, PublisherRow):
            self._publishers.add(new.info.tag, new)
        if isinstance(new, SubscriberRow):
            (self._pulls if new.pulls_s else self._subscribers).add(new.info.pattern, new)
        return _difference(old, new)

    def _show_tag(self, name: str, owner: str, new: TagRow | None) -> list[Change]:
        before = self.tag(name)
        self._tags.discard(name, owner)
        if new is not None:
            self._tags.add(name, new)
            if owner == self.node or new.born <= PLAUSIBLE_BORN:
                self._youngest = max(self._youngest, new.born)
            self._orphans.pop(name, None)
        if len(self._tags.of(name)) > 1:
            self._contested.add(name)
        else:
            self._contested.discard(name)
        after = self.tag(name)
        if after is None and new is None and before is not None and not self.is_destroyed(before):
            after = self._orphans[name] = before
        self._file(name)
        return _difference(before, after)

    def _held_name(self, name: str) -> str:
        return next((row.name for row in self._tags.of(name)), name)

    def _file(self, name: str) -> None:
        (self._seen.discard if self.tag(name) is None else self._seen.add)(name)
        first = name.partition("/")[0]
        if name in self._tags or name in self._orphans:
            self._branches.add(first, name)
        else:
            self._branches.discard(first, name)


def _id(row: Declaration) -> _ID:
    return row.owner, row.info.id


def _difference(old: Row | None, new: Row | None) -> list[Change]:
    if old == new:
        return []
    if new is None:
        return [Change(ChangeKind.REMOVED, old)] if old is not None else []
    return [Change(ChangeKind.ADDED if old is None else ChangeKind.CHANGED, new)]


def next_term(row: TagRow) -> int:
    """Of the same tag, written by another node or destroyed. It ends somewhere, so that all take the row in."""
    return min(row.term + 1, MAX_TERM)


def _check_untrusted(delta: Delta) -> None:
    if not 0 <= delta.since <= delta.through:
        raise BadMessage(f"a delta from version {delta.since} to {delta.through}")
    for entry in delta.entries:
        if not delta.since < entry.version <= delta.through:
            raise BadMessage(f"version {entry.version} in a delta from {delta.since} to {delta.through}")
        if entry.row is not None and (entry.row.owner != delta.node or entry.row.key != entry.key):
            raise BadMessage(f"node {delta.node!r} speaks for {entry.row.owner!r} about {entry.key!r}")
