"""Subscriptions to a wildcard that want one stream only, the one of highest fidelity (paper 004, section 2.2).

While a better one appears, its stream is opened beside the present one; when a message comes on it, the subscription
changes over: of the one before it gets what was sent until then, of the better one what is sent from then on. When its
publishers leave, the best of the others takes its place at once. Invariant: of one subscription at most one tag is
received, and at most one more is open.
"""

from __future__ import annotations

from collections.abc import Callable

from ringcast.daemon.alarm import Alarm
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.fidelity.worth import best_tag
from ringcast.daemon.rings.registrations import Subscription

LOOK_S = 0.05


class BestStreams:
    """`on_changed` is called when other streams are wanted than before."""

    def __init__(self, local: Local, deliver: Callable[[list[Send]], None], on_changed: Callable[[], None]) -> None:
        self._local = local
        self._deliver = deliver
        self._on_changed = on_changed
        self._alarm = Alarm(self._look)
        self._seen: dict[int, int] = {}
        """How far each ring was that is waited for."""

    def follow(self) -> None:
        """Publishers came or went."""
        changed = False
        for one in self._local.sharing.choosing.values():
            changed = self._choose(one) or changed
        if changed:
            self._on_changed()

    def close(self) -> None:
        self._alarm.close()

    def _choose(self, one: Subscription) -> bool:
        table = self._local.table
        wanted = best_tag(table, one.pattern, one.tag_now)
        before = (one.tag_now, one.tag_next)
        if wanted and wanted != one.tag_now and not any(row.alive for row in table.publishers(one.tag_now)):
            self._deliver(self._local.sharing.change_over(one, wanted))
        else:
            one.tag_next = wanted if wanted != one.tag_now else ""
            if one.tag_next:
                self._alarm.within(LOOK_S)
        return (one.tag_now, one.tag_next) != before

    def _look(self) -> None:
        """Whether a message came on what is better."""
        sharing = self._local.sharing
        waiting = [one for one in sharing.choosing.values() if one.tag_next]
        changed = False
        seen: dict[int, int] = {}
        for one in waiting:
            rings = sharing.next_rings(one)
            if any(ring.next_seq > self._seen.get(ring.ring, ring.next_seq) for ring in rings):
                self._deliver(sharing.change_over(one, one.tag_next))
                changed = True
            else:
                seen |= {ring.ring: self._seen.get(ring.ring, ring.next_seq) for ring in rings}
        self._seen = seen
        if any(one.tag_next for one in waiting):
            self._alarm.within(LOOK_S)
        if changed:
            self._on_changed()
