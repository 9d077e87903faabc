"""Whose a node's name is when daemons of that name come, go, restart or meet. Pure.

Invariant: for each name `holders` has the daemon that `Roster.holder` gives, and every change of it was returned as an
action. A daemon yields only to a living one, which it met on a link and which answered when it was called at the
address that it gives: anybody can say a name and an age. Two compare the ages that they told each other when they first
met, so both decide from the same two numbers, and no clock is compared with another.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ringcast.control.limits import AGE_SLACK_NS
from ringcast.control.peering import Hello, NodeRecord
from ringcast.daemon.mesh.core.events import (
    Action,
    NameCleared,
    NameConflict,
    NodeChanged,
    NodeDown,
    NodeRestarted,
    NodeUp,
)
from ringcast.daemon.mesh.core.roster import Roster

MAX_CLAIMS = 64


class _Claim(NamedTuple):
    """A daemon with this one's name introduced itself, and has not been called back yet."""

    my_age_ns: int
    hello: Hello
    at_ns: int


class Names:
    def __init__(self, roster: Roster, refused: Counter[str]) -> None:
        self.holders: dict[str, NodeRecord] = {}
        """This node's own name left out."""
        self._roster = roster
        self._refused = refused
        self._claims: dict[int, _Claim] = {}

    def settle(self, name: str) -> list[Action]:
        """Something changed about those of that name."""
        if name == self._roster.me.name:
            return self._settle_own()
        old, new = self.holders.get(name), self._roster.holder(name)
        if new is None:
            self.holders.pop(name, None)
            return [NodeDown(old)] if old is not None else []
        self.holders[name] = new
        if old is None:
            return [NodeUp(new)]
        if old.incarnation != new.incarnation:
            return [NodeRestarted(old, new)]
        return [NodeChanged(new)] if old != new else []

    def unproven(self) -> list[NodeRecord]:
        """Who claims this one's name, and has to be called before that is believed."""
        self._claims = {number: claim for number, claim in self._claims.items() if self._roster.is_here(number)}
        return [claim.hello.record for claim in self._claims.values()]

    def meet(self, my_age_ns: int, hello: Hello, now_ns: int, *, proven: bool) -> list[Action]:
        """A living daemon introduced itself. If it has this one's name, the younger of the two yields; this one does
        when the other is `proven` to be where it says, and goes on serving until then."""
        me, other = self._roster.me, hello.record
        if other.name != me.name:
            return []
        claim = self._claims.pop(other.incarnation, None) or _Claim(my_age_ns, hello, now_ns)
        younger = (claim.my_age_ns, -me.incarnation) < (claim.hello.age_ns, -other.incarnation)
        if younger and not me.yields and not other.yields:
            grown_ns = hello.age_ns - claim.hello.age_ns
            if abs(grown_ns - (now_ns - claim.at_ns)) > AGE_SLACK_NS:
                self._refused["implausible age"] += 1
                return []
            if not proven:
                self._refused["unproven name"] += 1
                if len(self._claims) < MAX_CLAIMS:
                    self._claims[other.incarnation] = claim
                return []
            self._roster.describe(yields=True)
        me = self._roster.me
        return [NameConflict(other, me, mine=True) if me.yields else NameConflict(me, other, mine=False)]

    def _settle_own(self) -> list[Action]:
        me = self._roster.me
        others = [r for r in self._roster.named(me.name) if r.incarnation != me.incarnation]
        # The others are gone; or all yielded, because they met twice at once and their ages were nearly equal.
        if not me.yields or not all(other.yields and other.incarnation > me.incarnation for other in others):
            return []
        self._roster.describe(yields=False)
        return [NameCleared(self._roster.me)]
