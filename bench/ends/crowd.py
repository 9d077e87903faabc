"""One process with many topics: what one more message, subscription or connection costs then.

Subclasses hold topics, each with a publisher and a subscriber, and send on one of their own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from ends.interface import PAYLOAD, End

TRIES = 7
"""The lowest of so many counts: what else the machine does only adds."""


class Crowd(End):
    """`once` sends one message on a topic of its own and receives it; `subscribe_once` and `connect_once` do that and
    undo it again."""

    def hold(self, first: int, count: int) -> None:
        raise NotImplementedError

    def once(self, data: bytes) -> None:
        raise NotImplementedError

    def subscribe_once(self) -> None:
        raise NotImplementedError

    def connect_once(self) -> None:
        raise NotImplementedError

    def grow(self, first: int, count: int) -> float:
        """Seconds that holding `count` topics more took."""
        begin = time.perf_counter()
        self.hold(first, count)
        return time.perf_counter() - begin

    def cost(self, count: int) -> float:
        """Seconds a message."""
        self._many(count)
        return min(self._many(count) for _ in range(TRIES))

    def _many(self, count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            self.once(PAYLOAD)
        return (time.perf_counter() - begin) / count

    def take_up(self, tries: int) -> dict[str, float]:
        """Seconds, p50, of subscribing to a topic that exists and of connecting."""
        return {"subscribe": _median(self.subscribe_once, tries), "connect": _median(self.connect_once, tries)}


def _median(call: Callable[[], object], tries: int) -> float:
    taken = []
    for _ in range(tries):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)
