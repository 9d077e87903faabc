"""Fidelity follows resources: what subscriptions of this node with a range get of it (paper 004, section 2.2).

Two things limit it. Admission leaves as much as all deadlines allow, as soon as a declaration comes or goes. And what
becomes of the messages is looked at: those that are lost, or old when their reader has them, say that a link or a
processor does not keep up (`ringcast.adapt.fidelity` decides). Invariant: what a subscription has is within its range,
and its client was told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest

from ringcast import _core
from ringcast.adapt.fidelity import Follower, Seen
from ringcast.daemon.admitting.admitting import Allowed
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.clients.local import Local
from ringcast.daemon.clients.subscribers import ADMISSION
from ringcast.daemon.coalesced import Coalesced
from ringcast.daemon.effects import Send
from ringcast.daemon.rings.registrations import Subscription
from ringcast.daemon.rings.ring import MirrorRing
from ringcast.model.place import Wanted
from ringcast.scaling.fidelity import Fidelity, Range

LOOK_S = 0.5
LATE_S = 1.0
"""A message is late for a reader that gave no deadline when it is so old, or four periods of its rate."""


class Ranges:
    """`on_changed` is called when streams are wanted in another way than before."""

    def __init__(self, local: Local, deliver: Callable[[list[Send]], None], on_changed: Callable[[], None]) -> None:
        self._local = local
        self._deliver = deliver
        self._on_changed = on_changed
        self._followed: dict[int, _Followed] = {}
        self._alarm = Alarm(self._look)
        self._settling = Coalesced(self._settle)
        self._known: object = None

    def follow(self) -> None:
        """Something changed, here or elsewhere: subscriptions came and went, or what is declared."""
        ranged = self._local.sharing.ranged
        if not ranged and not self._followed:
            return
        for number in self._followed.keys() - ranged.keys():
            del self._followed[number]
        for number in ranged.keys() - self._followed.keys():
            self._followed[number] = _Followed(ranged[number])
        if ranged:
            self._alarm.within(LOOK_S)
        self._settling.soon()

    def close(self) -> None:
        self._settling.close()
        self._alarm.close()

    def _settle(self) -> None:
        """What admission allows, if it may be something else than before."""
        table = self._local.table
        declared = {row.info.incarnation: row for row in table.all_publishers() if row.declared and row.alive}
        asking = {
            (row.owner, row.info.id): (row.deadline_s, _asked(row.wanted))
            for tag in {row.info.tag for row in declared.values()}
            for row in (*table.subscribers(tag), *table.pulls(tag))
        }
        nodes = {row.owner for row in declared.values()} | {owner for owner, _ in asking}
        known = (
            {number: row.declared for number, row in declared.items()}, asking, set(self._followed),
            self._capacities(sorted(nodes)) if declared else [],
        )  # fmt: skip
        if known == self._known:
            return
        self._known = known
        allowed = self._local.admitting.allowed() if declared else {}
        for number, followed in self._followed.items():
            followed.allowed = allowed.get(number, Allowed())
        self._apply()

    def _capacities(self, nodes: list[str]) -> list[object]:
        """What these nodes said of themselves. Their answers may come after the declarations."""
        others = self._local.admitting.others
        if others is None:
            return []
        return [
            (others.of(node), others.card(node), [others.latency_s(node, other) for other in nodes if other != node])
            for node in nodes
        ]

    def _look(self) -> None:
        self._settle()  # or what has just come would have all of its range until then
        for followed in self._followed.values():
            followed.look(*self._came(followed.subscription))
        self._apply()
        if self._followed:
            self._alarm.within(LOOK_S)

    def _came(self, subscription: Subscription) -> tuple[int, int, int]:
        """Packets that came here for it from other nodes, messages that became whole of them, and messages that were
        sent of which nothing came."""
        matching = self._local.rings.matching(subscription.info.pattern)
        rings = [ring for ring in matching if isinstance(ring, MirrorRing)]
        unheard = sum(ring.unheard for ring in rings if subscription.reads(ring))
        return sum(ring.came[0] for ring in rings), sum(ring.came[1] for ring in rings), unheard

    def _apply(self) -> None:
        changed = False
        for followed in self._followed.values():
            now = followed.now()
            if now != followed.subscription.fidelity:
                self._deliver(self._local.subscribers.refine(followed.subscription, now))
                changed = True
        if changed:
            self._deliver(self._local.sharing.follow_rates())
            self._on_changed()


def _asked(wanted: Wanted) -> object:
    """What does not change when it gets more or less of its range."""
    span = Range(wanted.range_hz, wanted.range_size)
    return span if span != Range() else (wanted.every, wanted.rate_hz, wanted.size)


class _Followed:
    """One subscription with a range."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.allowed = Allowed()
        self._range = subscription.options.range or Range()
        self._follower = Follower([step.rate_hz for step in self._range.steps()])
        self._had = subscription.status()
        self._pieces = self._whole = 0
        self._silent_s = 0.0

    def now(self) -> Fidelity:
        step, less = self._range.limited(self._follower.step, *self.allowed)
        options = self.subscription.options
        why = ADMISSION if less else self._follower.why if self._follower.step else ""
        rate_hz = step.rate_hz if self._range.hz is not None else options.rate_hz
        return Fidelity(rate_hz or None, options.size if step.size is None else step.size, why)

    def look(self, pieces: int, whole: int, unheard: int = 0) -> None:
        """How many packets have come for it so far, and messages become whole of them, received or not; and how many
        messages were sent of late of which nothing came."""
        had, self._had = self._had, self.subscription.status()
        now, before = self._had.counters, had.counters
        received, lost = (max(0, now.get(name, 0) - before.get(name, 0)) for name in ("received", "lost"))
        rate_hz = self.subscription.options.rate_hz
        limit_s = self.subscription.deadline_s or max(LATE_S, 4 / rate_hz if rate_hz else 0.0)
        late = sum(
            max(0, count - earlier)
            for bucket, (count, earlier) in enumerate(zip_longest(self._had.latency, had.latency, fillvalue=0))
            if _core.latency_bucket_ns(bucket) > limit_s * 1e9
        )
        came = pieces - self._pieces if whole <= self._whole else 0
        self._pieces, self._whole = pieces, whole
        self._silent_s = self._silent_s + LOOK_S if came > 0 and not received and not lost else 0.0
        # A long message may take its time, up to the period of the slowest rate that it may have.
        least_hz = self._range.hz[0] if self._range.hz is not None else rate_hz
        unfinished = came if self._silent_s > max(LATE_S, 2 / least_hz if least_hz else 0.0) else 0
        hz = received / LOOK_S / max(1, now.get("rings", 1))
        self._follower.look(Seen(received, lost, late, hz, unfinished, unheard))
