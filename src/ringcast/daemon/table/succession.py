"""Failover of tags: who keeps a tag when its primary goes or both sides of a partition created it. Pure.

Every node evaluates the same rules on the same rows and acts on its own rows only, so all come to the same answer:
- the primary names as backup the present node that ranks first for the tag (rendezvous hashing), and keeps it while
  it is present;
- when the primary goes, the heir writes the tag anew, in the next term: the backup, or where that is gone too, of the
  present nodes with a ring or subscriber of the tag the one that ranks first; until it has done so the tag is
  seen as it was, so that nobody notices; if there is no heir, the tag waits out of sight for its primary to return;
- a node whose row no longer counts (a later term, or born earlier elsewhere) withdraws it, and says so if it was not
  a take-over; it keeps the row while the one that counts lacks a setting that is newer in it;
- the primary takes newer settings over from rows that do not count (`settings.py` says what is newer), so that
  no administrator's setting is lost when the halves of a partition meet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from ringcast.daemon.mesh.core.events import TagContest
from ringcast.daemon.table import settings
from ringcast.daemon.table.rows import Change, ChangeKind, TagRow
from ringcast.daemon.table.table import TagTable, next_term


def first_for(tag: str, nodes: Collection[str]) -> str:
    """Of these nodes the one that ranks first for the tag; '' of none. Few tags move when nodes come and go."""
    return max(nodes, key=lambda node: hashlib.blake2b(f"{tag}\n{node}".encode(), digest_size=8).digest(), default="")


def heir(row: TagRow, present: Collection[str], holders: Collection[str]) -> str:
    """Who takes the tag over from a primary that went; '' if nobody does."""
    if row.backup in present:
        return row.backup
    return first_for(row.name, [node for node in holders if node in present])


MOST_AT_ONCE = 256
"""Backups that one call appoints: a daemon with thousands of tags does other things in between."""


class Succession:
    """Is shown all changes of the table (`noticed`), and asked to act on who is here (`settle`)."""

    def __init__(self, table: TagTable) -> None:
        self.written = 0
        """How often a row of this node was written or withdrawn here."""
        self._table = table
        self._mine: dict[str, TagRow] = {}
        self._others: set[str] = set()
        """Who was here when `settle` was called last."""
        self._unappointed: dict[str, None] = {}
        """Tags of this node whose backups are to be looked at."""
        self._waiting: dict[str, TagRow] = {}
        self._outdone: dict[str, TagRow] = {}
        """This node's rows that do not count, kept until their settings have been taken over."""

    def noticed(self, changes: Iterable[Change]) -> list[TagContest]:
        """Follow the table; withdraw this node's rows of tags that are now another's."""
        contests: list[TagContest] = []
        for kind, row in changes:
            if not isinstance(row, TagRow):
                continue
            mine = self._mine.pop(row.name, None)
            if kind is ChangeKind.REMOVED:
                if self._table.is_destroyed(row):
                    self._waiting.pop(row.name, None)
                    self._withdraw(row.name)
                continue
            self._waiting.pop(row.name, None)
            if row.primary == self._table.node:
                self._mine[row.name] = row
                self._unappointed[row.name] = None
                self._outdone.pop(row.name, None)
            elif mine is not None:
                self._outdone[row.name] = mine
                contests += _contest(mine, row)
            outdone = self._outdone.get(row.name)
            if outdone is not None and settings.merged(row, [outdone]) is row:
                self._withdraw(row.name)
        return contests

    def take_over_settings(self) -> list[Change]:
        """Newer settings out of others' rows of tags that this node keeps."""
        changes: list[Change] = []
        for name in self._table.contested():
            mine = self._mine.get(name)
            if mine is not None and (merged := settings.merged(mine, self._table.rivals(name))) is not mine:
                changes += self._put(merged)
        return changes

    def settle(self, others: Collection[str]) -> list[Change]:
        """Do what is this node's to do now that `others` are here: take over, and appoint backups. Not all at once:
        call it again while `unsettled`."""
        changes: list[Change] = []
        present = {*others, self._table.node}
        self._waiting |= {row.name: row for row in self._table.orphans()}
        for row in list(self._waiting.values()):
            chosen = heir(row, present, () if row.backup in present else self._holders(row.name))
            if chosen == self._table.node and self._table.has_room:
                backup = first_for(row.name, others)
                changes += self._put(replace(row, primary=self._table.node, backup=backup, term=next_term(row)))
            elif chosen in ("", self._table.node):
                changes += self._table.give_up(row.name)
        if self._others != set(others):
            self._others = set(others)
            self._unappointed = dict.fromkeys(self._mine)
        room = MOST_AT_ONCE
        while self._unappointed and room:
            mine = self._mine.get(self._unappointed.popitem()[0])
            if mine is not None and mine.backup not in self._others:
                backup = first_for(mine.name, others)
                if backup != mine.backup:
                    room -= 1
                    changes += self._put(replace(mine, backup=backup))
                    self._unappointed.pop(mine.name, None)
        return changes

    @property
    def unsettled(self) -> bool:
        return bool(self._unappointed)

    def _put(self, row: TagRow) -> list[Change]:
        self.written += 1
        changes = self._table.put(row)
        self.noticed(changes)
        return changes

    def _withdraw(self, name: str) -> None:
        row = self._outdone.pop(name, None)
        if row is not None:
            self.written += 1
            self._table.remove(row.key)

    def _holders(self, tag: str) -> set[str]:
        # With the rings that publishers left behind: they can be pulled only while their tag is known.
        publishers = {row.owner for row in self._table.publishers(tag)}
        return publishers | {row.owner for row in self._table.subscribers(tag)}


def _contest(mine: TagRow, row: TagRow) -> list[TagContest]:
    taken_over = mine.born == row.born and mine.term < row.term and mine.attributes == row.attributes
    return [] if taken_over else [TagContest(won=row, lost=mine)]
