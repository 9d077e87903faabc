"""Who is there, as one node knows it: every daemon ever heard of, and how it is. Pure.

Daemons are known by incarnation, not by name: two of one name are two members, and which of them the name belongs to is
a question that all nodes answer alike (`holder`). Of two things said about a daemon the one of higher rank counts,
(counter, status) in that order, and only the daemon itself raises its counter. A counter far ahead of the known one
(`is_far`) is an attacker's. Invariant: what is known is the highest of all that was heard and could be, so rosters that
heard the same agree, in whatever order and however often they heard it.
"""

from __future__ import annotations

import bisect
import enum
from typing import Any

import msgspec

from ringcast.control.limits import COUNTER_STEP, MAX_COUNTER
from ringcast.control.peering import NodeRecord, Rumour
from ringcast.daemon.table.digest import BUCKETS, KeyedSums

MAX_MEMBERS = 10_000
MAX_DEAD = 1024
SMALL = 16
"""Up to how many nodes everyone is linked with everyone."""


class Status(enum.IntEnum):
    ALIVE = 0
    SUSPECT = 1
    DEAD = 2


class Member:
    __slots__ = ("record", "since_ns", "status")

    def __init__(self, record: NodeRecord, status: Status, since_ns: int) -> None:
        self.record = record
        self.status = status
        self.since_ns = since_ns

    @property
    def rank(self) -> int:
        return self.record.counter * 4 + self.status

    @property
    def rumour(self) -> Rumour:
        return Rumour(self.record, int(self.status))


class Roster:
    """The roster of the daemon that `me` describes. Suspects count as being there."""

    def __init__(self, me: NodeRecord) -> None:
        self.members: dict[int, Member] = {}
        self.keyed_sums = KeyedSums()
        self.suspects: dict[int, None] = {}
        self.dead: dict[int, None] = {}  # longest dead first
        self.news: dict[int, int | None] = {}
        """Who changed and has not been talked of yet, and the link by which it became known."""
        self.turned_away = 0
        """Daemons not taken in because there are too many."""
        self._here: list[int] = []  # sorted
        self._names: dict[str, list[int]] = {}  # of those who are here
        self._me = me.incarnation
        self._set(Member(me, Status.ALIVE, 0))

    def __len__(self) -> int:
        """How many are there, this one included."""
        return len(self._here)

    @property
    def me(self) -> NodeRecord:
        return self.members[self._me].record

    def is_here(self, incarnation: int) -> bool:
        member = self.members.get(incarnation)
        return member is not None and member.status is not Status.DEAD

    def here(self) -> list[NodeRecord]:
        return [self.members[incarnation].record for incarnation in self._here]

    def named(self, name: str) -> list[NodeRecord]:
        """Who is there under that name: more than one is a conflict."""
        return [self.members[incarnation].record for incarnation in self._names.get(name, ())]

    def holder(self, name: str) -> NodeRecord | None:
        """Who holds the name: not those that yield, and of the rest the one with the lowest number."""
        records = self.named(name)
        return min(records, key=lambda record: (record.yields, record.incarnation)) if records else None

    def neighbours(self) -> list[int]:
        """Whom to be linked with: everyone, or in a large mesh those 1, 2, 4, 8... places away in the ring of numbers.

        So the links of n nodes make a connected graph of about 2 log2(n) links each and as many steps across, everyone
        is watched by somebody, and both ends of a link find it without a word.
        """
        n = len(self._here)
        if n <= SMALL:
            return [incarnation for incarnation in self._here if incarnation != self._me]
        at = bisect.bisect_left(self._here, self._me)
        found = {self._here[(at + sign * 2**power) % n] for power in range((n - 1).bit_length()) for sign in (1, -1)}
        return sorted(found - {self._me})

    # ------------------------------------------------------------------ what is heard

    def merge(self, record: NodeRecord, status: Status, now_ns: int, by: int | None = None) -> bool:
        """Take in what is said of a daemon; whether it was news. Not for what is said of this one."""
        known = self.members.get(record.incarnation)
        if known is None:
            if status is Status.DEAD:
                return False  # nobody to withdraw; remembering the dead of others would never end
            if len(self._here) >= MAX_MEMBERS:
                self.turned_away += 1
                return False
        elif record.counter * 4 + status <= known.rank or record.name != known.record.name:
            return False
        self._set(Member(record, status, now_ns))
        self.news[record.incarnation] = by
        return True

    def correct(self, record: NodeRecord, now_ns: int) -> None:
        """A daemon that was met itself is like this, whatever was said of it: even with a lower counter."""
        known = self.members.get(record.incarnation)
        if known is not None and known.record.name != record.name:
            self._set(Member(known.record, Status.DEAD, now_ns))
            del self.members[record.incarnation], self.dead[record.incarnation]
        self._set(Member(record, Status.ALIVE, now_ns))
        self.news[record.incarnation] = None

    def describe(self, above: int = 0, **changes: Any) -> None:
        """This daemon describes itself anew, with a higher counter than before, and than `above`."""
        counter = min(max(self.me.counter, above) + 1, MAX_COUNTER)
        self._set(Member(msgspec.structs.replace(self.me, counter=counter, **changes), Status.ALIVE, 0))
        self.news[self._me] = None

    def take_news(self) -> list[tuple[Rumour, int | None]]:
        news = [(self.members[i].rumour, by) for i, by in self.news.items() if i in self.members]
        self.news.clear()
        return news

    def forget_dead(self, before_ns: int) -> None:
        """Those who died before that moment, and the oldest beyond the bound."""
        for incarnation in list(self.dead):
            if len(self.dead) <= MAX_DEAD and self.members[incarnation].since_ns >= before_ns:
                return
            del self.dead[incarnation]
            del self.members[incarnation]

    def is_far(self, record: NodeRecord) -> bool:
        """Whether this is so unlike what is known of the daemon that one of the two is made up."""
        known = self.members.get(record.incarnation)
        if known is None:
            return False
        return abs(record.counter - known.record.counter) > COUNTER_STEP or record.name != known.record.name

    def _set(self, member: Member) -> None:
        incarnation, name = member.record.incarnation, member.record.name
        old = self.members.get(incarnation)
        was_here = old is not None and old.status is not Status.DEAD
        is_here = member.status is not Status.DEAD
        if old is not None and was_here:
            self.keyed_sums.toggle(incarnation, old.rank)
        if is_here:
            self.keyed_sums.toggle(incarnation, member.rank)
        if was_here != is_here:
            if is_here:
                bisect.insort(self._here, incarnation)
                self._names.setdefault(name, []).append(incarnation)
            else:
                self._here.remove(incarnation)
                self._names[name].remove(incarnation)
                if not self._names[name]:
                    del self._names[name]
        self.members[incarnation] = member
        for group, belongs in ((self.suspects, member.status is Status.SUSPECT), (self.dead, not is_here)):
            group.pop(incarnation, None)
            if belongs:
                group[incarnation] = None

    # ------------------------------------------------------------------ comparing with another's

    def ranks(self, buckets: list[int]) -> dict[int, int]:
        """Who is there, in these buckets."""
        chosen = set(buckets)
        return {i: self.members[i].rank for i in self._here if i % BUCKETS in chosen}

    def compare(self, buckets: list[int], theirs: dict[int, int]) -> tuple[list[Rumour], bool]:
        """What the sender of such ranks lacks, and whether it has what is lacking here."""
        lacking = False
        rumours = []
        for incarnation, rank in theirs.items():
            known = self.members.get(incarnation)
            if known is None or known.rank < rank:
                lacking = True
            elif known.rank > rank:
                rumours.append(known.rumour)
        rumours += [self.members[i].rumour for i in self.ranks(buckets) if i not in theirs]
        return rumours, lacking
