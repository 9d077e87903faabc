"""Events of a subscription's quality, each kind on a thread of its own: missed deadlines, silent publishers, lost
messages; and how much of a range of rates or sizes it has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringcast._core import latency_bucket_ns
from ringcast.errors import ClosedError
from ringcast.notify import OnError, Service
from ringcast.qos import Monitor, Profile, QualityEvent

if TYPE_CHECKING:
    from ringcast.client.rings.subscribed import SubscribedRings
    from ringcast.scaling.fidelity import Fidelity


class QualityCallback(Service):
    """Made by `sub.on_quality`. It looks at the rings and consumes nothing, so it may run beside whoever receives."""

    owner: SubscribedRings

    def __init__(
        self, rings: SubscribedRings, profile: Profile, callback: Callable[[QualityEvent], object],
        on_error: OnError | None,
    ) -> None:  # fmt: skip
        super().__init__(rings, rings.registration, on_error)
        times = [one for one in (profile.latency_s, rings.registration.scaling.deadline_s) if one is not None]
        self._late_ns = round(min(times) * 1e9) if times else None
        self._monitor = Monitor(profile, time.monotonic_ns(), rings.lost, self._late())
        self._callback = callback

    def _turn(self) -> None:
        if self._stopping.wait(self._monitor.look_every_s):
            return
        if self.owner.closed:
            raise ClosedError("subscriber")
        for event in self._monitor.look(time.monotonic_ns(), self._newest(), self.owner.lost, self._late()):
            try:
                self._callback(event)
                self.delivered += 1
            except Exception as exc:
                self._report(exc, event)

    def _newest(self) -> dict[int, int | None]:
        """By publisher; of a stream that just moved there are two rings."""
        found: dict[int, int | None] = {}
        for publisher, seq in self.owner.heads():
            known = found.get(publisher.incarnation)
            found[publisher.incarnation] = seq if known is None or (seq is not None and seq > known) else known
        return found

    def _late(self) -> int:
        """How many messages were received later than allowed, for sure: latencies are counted in buckets."""
        if self._late_ns is None:
            return 0
        counts = self.owner.latency_histogram()
        return sum(n for at, n in enumerate(counts) if at and latency_bucket_ns(at - 1) >= self._late_ns)

    def _wake(self) -> None:
        pass  # closing sets the event that it waits for

    def _ended(self) -> None:
        pass


class FidelityCallback(Service):
    """Made by `sub.on_fidelity`. Of changes that follow each other faster than the callback takes, the last is told."""

    owner: SubscribedRings

    def __init__(
        self, rings: SubscribedRings, callback: Callable[[Fidelity], object], on_error: OnError | None
    ) -> None:  # fmt: skip
        super().__init__(rings, rings.registration, on_error)
        self._registration = rings.registration
        self._callback = callback
        self._told = rings.registration.fidelity

    def _turn(self) -> None:
        changed = self._registration.fidelity_changed
        with changed:
            changed.wait_for(lambda: self._stopping.is_set() or self._registration.fidelity != self._told)
            now = self._registration.fidelity
        if now == self._told:
            return
        self._told = now
        try:
            self._callback(now)
            self.delivered += 1
        except Exception as exc:
            self._report(exc, now)

    def _wake(self) -> None:
        with self._registration.fidelity_changed:
            self._registration.fidelity_changed.notify_all()

    def _ended(self) -> None:
        pass
