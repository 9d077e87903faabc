"""Whose a node's name is when daemons of that name come, go, restart or meet. Pure.

Invariant: for each name `holders` has the daemon that `Roster.holder` gives, and every change of it was returned as an
action. A daemon yields only to a living one, which it met on a link: two compare the ages that they told each other
there, so both decide from the same two numbers, and no clock is compared with another.
"""

from __future__ import annotations

from ringcast.control.peering import Hello, NodeRecord
from ringcast.daemon.events import Action, NameCleared, NameConflict, NodeChanged, NodeDown, NodeRestarted, NodeUp
from ringcast.daemon.roster import Roster


class Names:
    def __init__(self, roster: Roster) -> None:
        self.holders: dict[str, NodeRecord] = {}
        """This node's own name left out."""
        self._roster = roster

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

    def meet(self, my_age_ns: int, hello: Hello) -> list[Action]:
        """A living daemon introduced itself. If it has this one's name, the younger of the two yields."""
        me, other = self._roster.me, hello.record
        if other.name != me.name:
            return []
        younger = (my_age_ns, -me.incarnation) < (hello.age_ns, -other.incarnation)
        if younger and not me.yields and not other.yields:
            self._roster.describe(yields=True)
        me = self._roster.me
        return [NameConflict(other, me, mine=True) if me.yields else NameConflict(me, other, mine=False)]

    def _settle_own(self) -> list[Action]:
        me = self._roster.me
        others = [r for r in self._roster.named(me.name) if r.incarnation != me.incarnation]
        # The others are gone; or all stood back, because they met twice at once and the ages were within a breath.
        if not me.yields or not all(other.yields and other.incarnation > me.incarnation for other in others):
            return []
        self._roster.describe(yields=False)
        return [NameCleared(self._roster.me)]
