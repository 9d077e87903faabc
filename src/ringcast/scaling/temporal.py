"""Scaling in time. Pure: numbers in, numbers out.

With factor n the messages of a stream are those whose number is a multiple of n, wherever that is decided: any two
proxies agree, and one takes the other's place without a word. A rate is a factor that follows the publisher: `Pace`
turns what was measured into n, and keeps it while the publisher's rate only wavers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

MAX_FACTOR = 2**32
WINDOW_NS = 2_000_000_000
"""What a publisher did longer ago does not tell what it does now."""

_TOLERANCE = 0.02
_HYSTERESIS = 0.05


def first_due(seq: int, every: int) -> int:
    """The first number at or after `seq` that is part of the scaled stream."""
    return -(-seq // every) * every


class Sample(NamedTuple):
    """A message of a stream: its number and the time it was sent."""

    seq: int
    sent_ns: int


def publisher_hz(samples: Iterable[Sample]) -> float:
    """How fast a publisher sends, by some of its messages, newest first; 0 when that cannot be told.

    Their numbers say how many there were in between, so a stream that was scaled on its way tells as well. Looks at
    those within WINDOW_NS before the newest and at one more, so that slow publishers are measured too.
    """
    newest: Sample | None = None
    oldest: Sample | None = None
    for sample in samples:
        if newest is None:
            newest = sample
            continue
        oldest = sample
        if newest.sent_ns - sample.sent_ns > WINDOW_NS:
            break
    if newest is None or oldest is None or newest.sent_ns <= oldest.sent_ns or newest.seq <= oldest.seq:
        return 0.0
    return (newest.seq - oldest.seq) * 1e9 / (newest.sent_ns - oldest.sent_ns)


def factor(rate_hz: float, measured_hz: float) -> int:
    """The n that leaves at most `rate_hz` of `measured_hz`, within the accuracy of measuring."""
    return max(1, min(MAX_FACTOR, math.ceil(measured_hz / rate_hz * (1 - _TOLERANCE))))


class Pace:
    """The factor of one stream for one rate, as it follows what is measured."""

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = check_rate(rate_hz)
        self.every = 1

    def follow(self, measured_hz: float) -> int:
        """The factor from now on. It changes when the publisher clearly left the range in which it is right."""
        if measured_hz <= 0:
            return self.every
        ratio = measured_hz / self.rate_hz
        too_fast = ratio > self.every * (1 + _HYSTERESIS)
        too_slow = ratio < (self.every - 1) * (1 - _HYSTERESIS)
        if too_fast or too_slow:
            self.every = factor(self.rate_hz, measured_hz)
        return self.every


def check_rate(rate_hz: object) -> float:
    """Raises ValueError."""
    if isinstance(rate_hz, int | float) and not isinstance(rate_hz, bool) and 1e-6 <= rate_hz <= 1e9:
        return float(rate_hz)
    raise ValueError(f"rate_hz is a number of messages a second from 1e-6 to 1e9, not {rate_hz!r}")
