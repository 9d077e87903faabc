"""What became of a profile's promises, seen from when messages arrive. Pure: time is an argument.

A deadline is missed when no message of a publisher came for a period, and once more for every further one. A publisher
is silent when nothing of it came within the lease, and alive again with its next message. Messages that were received
later than the profile's latency allows, and those that were lost, are told with their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ringcast.model.profile import Profile

EventKind = Literal["deadline", "silent", "alive", "late", "lost"]
NOBODY = 0
"""While there is no publisher."""


class QualityEvent(msgspec.Struct, frozen=True):
    """`count` is how many periods were missed, or messages late or lost, since the last event of the kind; `silent_s`
    how long nothing has come. `publisher` is the incarnation of the one concerned; 0 is all together."""

    kind: EventKind
    count: int
    silent_s: float
    publisher: int = NOBODY


class Monitor:
    """Begins when it is made: a publisher that never sends is late too."""

    def __init__(self, profile: Profile, now_ns: int, lost: int = 0, late: int = 0) -> None:
        self._period_ns = None if profile.period_s is None else round(profile.period_s * 1e9)
        self._lease_ns = None if profile.lease_s is None else round(profile.lease_s * 1e9)
        self._streams = {NOBODY: _Stream(now_ns)}
        self._lost, self._late = lost, late

    @property
    def look_every_s(self) -> float:
        """So often there may be something new to tell."""
        times = [time for time in (self._period_ns, self._lease_ns) if time is not None]
        return min([*times, 1_000_000_000]) / 2e9

    def look(self, now_ns: int, newest: Mapping[int, object], lost: int, late: int = 0) -> list[QualityEvent]:
        """`newest` has, by publisher, another object when something of it arrived, None while nothing has; `lost` and
        `late` are how many messages in all."""
        self._follow(now_ns, newest)
        found: list[QualityEvent] = []
        for publisher, stream in self._streams.items():
            found += stream.look(now_ns, newest.get(publisher), self._period_ns, self._lease_ns, publisher)
        since_s = min((now_ns - stream.last_ns) / 1e9 for stream in self._streams.values())
        if late > self._late:
            found.append(QualityEvent("late", late - self._late, since_s))
        if lost > self._lost:
            found.append(QualityEvent("lost", lost - self._lost, since_s))
        self._lost, self._late = max(lost, self._lost), max(late, self._late)
        return found

    def _follow(self, now_ns: int, newest: Mapping[int, object]) -> None:
        """Publishers come and go. The first takes over from nobody, and nobody from the last: the tag may be silent
        meanwhile."""
        there, before = set(newest) or {NOBODY}, self._streams
        self._streams = {one: before[one] for one in before if one in there}
        for one in sorted(there - before.keys()):
            heir = not self._streams and (one == NOBODY or NOBODY in before)
            latest = max(before.values(), key=lambda stream: stream.last_ns)
            self._streams[one] = latest if heir else _Stream(now_ns)


class _Stream:
    """Of one publisher."""

    def __init__(self, now_ns: int) -> None:
        self.last_ns = now_ns
        self._missed = 0
        self._silent = False
        self._seen: object = None

    def look(
        self, now_ns: int, newest: object, period_ns: int | None, lease_ns: int | None, publisher: int
    ) -> list[QualityEvent]:
        found: list[QualityEvent] = []
        if newest is not None and newest != self._seen:
            self._seen = newest
            if self._silent:
                self._silent = False
                found.append(QualityEvent("alive", 1, (now_ns - self.last_ns) / 1e9, publisher))
            self.last_ns, self._missed = now_ns, 0
        since = now_ns - self.last_ns
        if period_ns is not None and (periods := since // period_ns) > self._missed:
            found.append(QualityEvent("deadline", periods - self._missed, since / 1e9, publisher))
            self._missed = periods
        if lease_ns is not None and since > lease_ns and not self._silent:
            self._silent = True
            found.append(QualityEvent("silent", 1, since / 1e9, publisher))
        return found
