"""Seeing the demo as the daemon does: by the counters that publishers and subscribers keep in shared memory.

No process of the demo reports anything; this is what `ringcast tags` shows of any program.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from ringcast import _core
from ringcast.cli.parts.observation import rate_lately
from ringcast.demo.processes import Processes
from ringcast.demo.small.roles import TAGS
from ringcast.demo.small.scene import PublisherSeen, Scene, SubscriberSeen
from ringcast.measure.receiving import percentile

if TYPE_CHECKING:
    from ringcast.control.status import SubscriberStatus
    from ringcast.session import Session

_RATE_OVER_S = 2.0


class Watcher:
    """Looks at everybody. `processes` knows the role of each."""

    def __init__(self, session: Session, processes: Processes) -> None:
        self._processes = processes
        self._tags = [session.tag(name, create=False) for name in TAGS]
        self._received: dict[str, deque[tuple[float, int]]] = {}

    def look(self) -> Scene:
        publishers: dict[str, PublisherSeen] = {}
        subscribers: dict[str, SubscriberSeen] = {}
        for tag in self._tags:
            rate = rate_lately(tag, time.time_ns())
            for status in tag.publishers(left=True, local=True):
                role = self._processes.role_of(status.info.pid)
                if role is not None:
                    publishers[role] = PublisherSeen(
                        sent=status.counters["sent"],
                        bytes=status.counters["bytes"],
                        rate_hz=rate if status.alive else None,
                    )
            for seen in tag.subscribers(local=True):
                role = self._processes.role_of(seen.info.pid)
                if role is not None and role not in subscribers:  # a wildcard shows on every tag
                    subscribers[role] = self._subscriber(role, seen)
        return Scene(publishers=publishers, subscribers=subscribers)

    def _subscriber(self, role: str, status: SubscriberStatus) -> SubscriberSeen:
        p50, p99 = (percentile(status.latency, share, _core.latency_bucket_ns) for share in (0.5, 0.99))
        received = status.counters["received"]
        return SubscriberSeen(
            received=received, lost=status.counters["lost"], rate_hz=self._rate(role, received), latency_p50_ns=p50,
            latency_p99_ns=p99,
        )  # fmt: skip

    def _rate(self, role: str, received: int) -> float | None:
        looks = self._received.setdefault(role, deque())
        looks.append((time.monotonic(), received))
        while looks[-1][0] - looks[0][0] > _RATE_OVER_S:
            looks.popleft()
        (then, before), (now, after) = looks[0], looks[-1]
        return (after - before) / (now - then) if now > then else None
