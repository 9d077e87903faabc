"""Whom a node calls, and when: neighbours that are missing, seeds, and now and then the dead. Pure.

Of two daemons that want each other the lower number calls; the higher waits a moment, and then calls too, because the
way may be open in one direction only. Invariants: as long as somebody who could be reached is not, `due_ns` is set, so
meshes that can find each other do; addresses that were only heard of are dialled so often and no more, whoever names
them. Does not know what is said on a link.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from ringcast.control.limits import DIAL_BURST, DIALS_PER_MINUTE
from ringcast.control.peering import NodeRecord
from ringcast.daemon.mesh.core.events import Connect
from ringcast.daemon.mesh.core.links import Links
from ringcast.daemon.mesh.core.roster import SMALL, Roster
from ringcast.daemon.mesh.core.timing import Timing


class Calls:
    """`seeds` are addresses where others may be found; who answers there is learnt."""

    def __init__(
        self, roster: Roster, links: Links, timing: Timing, rng: Random, seeds: tuple[str, ...], now_ns: int,
        refused: Counter[str],
    ) -> None:  # fmt: skip
        self.due_ns: int | None = now_ns
        self._roster = roster
        self._links = links
        self._timing = timing
        self._rng = rng
        self._seeds: dict[str, int | None] = dict.fromkeys(seeds)
        self._dead_ns = now_ns
        self._budget = DialBudget(now_ns)
        self._refused = refused

    def seek(self, seeds: tuple[str, ...], now_ns: int) -> None:
        """Others may be found at these addresses from now on, and no longer at those before."""
        self._seeds = {address: self._seeds.get(address) for address in seeds}
        self.again(now_ns)

    def answered(self, address: str, incarnation: int) -> None:
        if address in self._seeds:
            self._seeds[address] = incarnation

    def missing(self, now_ns: int) -> list[Connect]:
        """Call whoever ought to be linked and is not."""
        self.due_ns = None
        me = self._roster.me
        namesakes = [r.incarnation for r in self._roster.named(me.name) if r.incarnation != me.incarnation]
        calls: list[Connect] = []
        for incarnation in dict.fromkeys(self._roster.neighbours() + namesakes):
            if self._links.to(incarnation) is None:
                calls += self.reach(self._roster.members[incarnation].record, now_ns)
        for address, who in self._seeds.items():
            if who is None or (not self._roster.is_here(who) and self._links.to(who) is None):
                calls += self.call((address,), now_ns)
        return calls + self._one_of_the_dead(now_ns)

    def reach(self, record: NodeRecord, now_ns: int, *, patient: bool = True) -> list[Connect]:
        wait_ns = self._roster.members[record.incarnation].since_ns + self._timing.grace_ns
        if patient and record.incarnation < self._roster.me.incarnation and now_ns < wait_ns:
            self.again(wait_ns)
            return []
        return self.call(record.control, now_ns)

    def verify(self, record: NodeRecord, now_ns: int) -> list[Connect]:
        """Call a daemon, although there may be a link with it, to hear from itself what is said of it."""
        return self.call(record.control, now_ns, sparingly=True)

    def call(self, addresses: tuple[str, ...], now_ns: int, *, sparingly: bool = False) -> list[Connect]:
        """With `sparingly`, addresses that answered before are not dialled more often than others either."""
        free = [] if sparingly else [address for address in addresses if self._is_free(address)]
        if len(free) < len(addresses) and self._budget.left(now_ns) < 1:
            self._refused["dial put off"] += 1
            self.again(self._budget.next_ns(now_ns))
            addresses = tuple(free)
        address, again_ns = self._links.choose(addresses, now_ns)
        if address is not None:
            if address not in free:
                self._budget.spend(now_ns)
            return [Connect(address)]
        if addresses:
            self.again(again_ns)
        return []

    def _is_free(self, address: str) -> bool:
        """Configured, or somebody answered there: not just heard of."""
        return address in self._seeds or self._links.who_answered(address) is not None

    def scouted(self, address: str, now_ns: int) -> list[Connect]:
        """In a large mesh some callers are enough for a newcomer."""
        few = self._rng.random() * len(self._roster) < SMALL
        return self.call((address,), now_ns) if few else []

    def again(self, time_ns: int) -> None:
        self.due_ns = time_ns if self.due_ns is None else min(self.due_ns, time_ns)

    def _one_of_the_dead(self, now_ns: int) -> list[Connect]:
        """So the halves of a mesh find each other when a partition ends."""
        dead = [i for i in self._roster.dead if self._links.to(i) is None]
        if not dead:
            self._dead_ns = now_ns + self._timing.max_redial_ns
            return []
        calls: list[Connect] = []
        if now_ns >= self._dead_ns:
            self._dead_ns = now_ns + self._timing.max_redial_ns
            calls = self.call(self._roster.members[self._rng.choice(dead)].record.control, now_ns)
        self.again(self._dead_ns)
        return calls


class DialBudget:
    """How often addresses that were only heard of may be dialled: `DIAL_BURST` at once, then so many a minute."""

    def __init__(self, now_ns: int) -> None:
        self._left = float(DIAL_BURST)
        self._at_ns = now_ns

    def left(self, now_ns: int) -> float:
        gained = max(0, now_ns - self._at_ns) * DIALS_PER_MINUTE / 60e9
        return min(float(DIAL_BURST), self._left + gained)

    def spend(self, now_ns: int) -> None:
        self._left, self._at_ns = self.left(now_ns) - 1.0, max(now_ns, self._at_ns)

    def next_ns(self, now_ns: int) -> int:
        """When one more may be dialled."""
        return now_ns + int(max(0.0, 1.0 - self.left(now_ns)) * 60e9 / DIALS_PER_MINUTE) + 1
