"""Two nodes with clocks of their own and a network between them, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable

from ringcast.clock.exchange import Exchange

START_NS = 1_763_000_000_000_000_000
PERIOD_NS = 100_000_000

Delays = Callable[[random.Random], tuple[float, float]]


def idle(rng: random.Random) -> tuple[float, float]:
    """A LAN with a round trip of about 200 us, as the LabMap paper's: queues that are empty most of the time."""
    return 90_000 + rng.expovariate(1 / 8_000), 90_000 + rng.expovariate(1 / 8_000)


def one_way_load(rng: random.Random) -> tuple[float, float]:
    """What goes there stands in a queue of up to 3 ms, which is empty now and then; what comes back does not."""
    there, back = idle(rng)
    return there + (rng.uniform(0, 3e6) if rng.random() < 0.9 else 0.0), back


class Pair:
    """`ahead_ns` of the other node's clock at the beginning, and how fast it runs off."""

    def __init__(self, ahead_ns: float, drift: float, delays: Delays = idle, seed: int = 1) -> None:
        self.ahead_ns = ahead_ns
        self.drift = drift
        self.delays = delays
        self.own_ns = 0.0
        """How far this node's own clock was set ahead."""
        self.now_ns = 0.0
        self._rng = random.Random(seed)

    def offset_ns(self, at_ns: float) -> float:
        """The truth: how far the other clock is ahead."""
        return self.ahead_ns + self.drift * at_ns - self.own_ns

    def exchange(self) -> Exchange:
        there, back = self.delays(self._rng)
        worked = self._rng.uniform(5_000, 50_000)
        left = self.now_ns
        heard, answered, came = left + there, left + there + worked, left + there + worked + back
        self.now_ns += PERIOD_NS
        return Exchange(
            self._here(left), self._there(heard), self._there(answered), self._here(came), START_NS + int(came)
        )

    def skip(self, ns: float) -> None:
        self.now_ns += ns

    def _here(self, at_ns: float) -> int:
        return START_NS + round(at_ns + self.own_ns)

    def _there(self, at_ns: float) -> int:
        return START_NS + round(at_ns + self.ahead_ns + self.drift * at_ns)
