"""Who keeps a tag: its primary; when that goes, its backup; and one of two when both sides of a partition made it. Pure.

Every node evaluates the same rules on the same rows and acts on its own rows only, so all come to the same answer:
- the primary names as backup the present node that ranks first for the tag (rendezvous hashing), and keeps it while
  it is present;
- when the primary goes, the heir writes the tag anew, in the next term: the backup, or where that is gone too, of the
  present nodes with a publisher or subscriber on the tag the one that ranks first; if there is none, the tag waits for
  its primary to return;
- a node whose row no longer counts (a later term, or born earlier elsewhere) withdraws it, and says so if it was not
  a take-over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

import msgspec

from ringcast.daemon.events import TagContest
from ringcast.daemon.rows import Change, ChangeKind, TagRow, tag_key
from ringcast.daemon.table import TagTable


def first_for(tag: str, nodes: Collection[str]) -> str:
    """Of these nodes the one that ranks first for the tag; '' of none. Few tags move when nodes come and go."""
    return max(nodes, key=lambda node: hashlib.blake2b(f"{tag}\n{node}".encode(), digest_size=8).digest(), default="")


def heir(row: TagRow, present: Collection[str], holders: Collection[str]) -> str:
    """Who takes the tag over from a primary that went; '' if nobody does."""
    if row.backup in present:
        return row.backup
    return first_for(row.name, [node for node in holders if node in present])


class Succession:
    def __init__(self, table: TagTable) -> None:
        self._table = table
        self._orphans: dict[str, TagRow] = {}

    def withdrawn(self, changes: Iterable[Change]) -> None:
        """These rows went because their node did."""
        for kind, row in changes:
            if kind is ChangeKind.REMOVED and isinstance(row, TagRow):
                self._orphans[row.name] = row

    def nodes_changed(self, others: Collection[str]) -> list[Change]:
        """Other nodes came or went: `others` are here now."""
        changes: list[Change] = []
        for name, row in list(self._orphans.items()):
            if self._table.tag(name) is not None:
                del self._orphans[name]
            elif heir(row, [*others, self._table.node], self._holders(name)) == self._table.node:
                del self._orphans[name]
                mine = msgspec.structs.replace(
                    row, primary=self._table.node, backup=first_for(name, others), term=row.term + 1
                )
                changes += self._table.put(mine)
        return changes + self.appoint(self._table.tags(), others)

    def appoint(self, rows: Iterable[TagRow], others: Collection[str]) -> list[Change]:
        """Give those of the tags that are this node's a backup that is here."""
        changes: list[Change] = []
        for row in rows:
            if row.primary == self._table.node and row.backup not in others:
                backup = first_for(row.name, others)
                if backup != row.backup:
                    changes += self._table.put(msgspec.structs.replace(row, backup=backup))
        return changes

    def superseded(self, changes: Iterable[Change]) -> list[TagContest]:
        """Withdraw this node's rows of tags that are now another's."""
        contests = []
        for kind, row in changes:
            if kind is ChangeKind.REMOVED or not isinstance(row, TagRow):
                continue
            self._orphans.pop(row.name, None)
            mine = self._own(row.name) if row.primary != self._table.node else None
            if mine is not None:
                self._table.remove(mine.key)
                taken_over = mine.born == row.born and mine.term < row.term and mine.attributes == row.attributes
                if not taken_over:
                    contests.append(TagContest(won=row, lost=mine))
        return contests

    def _holders(self, tag: str) -> set[str]:
        publishers = {row.owner for row in self._table.publishers(tag) if row.alive}
        return publishers | {row.owner for row in self._table.subscribers(tag)}

    def _own(self, name: str) -> TagRow | None:
        theirs = self._table.digest()
        theirs[self._table.node] = (-1, 0)
        for delta in self._table.delta(theirs):
            for entry in delta.entries:
                if entry.key == tag_key(name) and isinstance(entry.row, TagRow):
                    return entry.row
        return None
