"""What became of a profile's promises, seen from when messages arrive. Pure: time is an argument.

A deadline is missed when no message came for a period, and once more for every further one. A publisher is silent when
nothing came within the lease, and alive again with the next message. Losses are told with their number.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ringcast.model.profile import Profile

EventKind = Literal["deadline", "silent", "alive", "lost"]


class QualityEvent(msgspec.Struct, frozen=True):
    """`count` is how many periods were missed or messages lost since the last event of the kind; `silent_s` how long
    nothing has come."""

    kind: EventKind
    count: int
    silent_s: float


class Monitor:
    """Begins when it is made: a publisher that never sends is late too."""

    def __init__(self, profile: Profile, now_ns: int, lost: int = 0) -> None:
        self._period_ns = None if profile.period_s is None else round(profile.period_s * 1e9)
        self._lease_ns = None if profile.lease_s is None else round(profile.lease_s * 1e9)
        self._last_ns = now_ns
        self._missed = 0
        self._lost = lost
        self._silent = False
        self._seen: object = None

    @property
    def look_every_s(self) -> float:
        """So often there may be something new to tell."""
        times = [time for time in (self._period_ns, self._lease_ns) if time is not None]
        return min([*times, 1_000_000_000]) / 2e9

    def look(self, now_ns: int, newest: object, lost: int) -> list[QualityEvent]:
        """`newest` is another one when something arrived; `lost` is how many messages are missing in all."""
        found: list[QualityEvent] = []
        if newest != self._seen:
            self._seen = newest
            if self._silent:
                self._silent = False
                found.append(QualityEvent("alive", 1, (now_ns - self._last_ns) / 1e9))
            self._last_ns, self._missed = now_ns, 0
        since = now_ns - self._last_ns
        if self._period_ns is not None and (periods := since // self._period_ns) > self._missed:
            found.append(QualityEvent("deadline", periods - self._missed, since / 1e9))
            self._missed = periods
        if self._lease_ns is not None and since > self._lease_ns and not self._silent:
            self._silent = True
            found.append(QualityEvent("silent", 1, since / 1e9))
        if lost > self._lost:
            found.append(QualityEvent("lost", lost - self._lost, since / 1e9))
            self._lost = lost
        return found
