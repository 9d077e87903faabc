"""How long messages took, as figures. Pure: delays in, percentiles and jitter out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import msgspec

MOST_KEPT = 1_000_000
"""Delays kept for exact percentiles; beyond, the newest count."""


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """Delays of `messages` messages. `jitter_ns` is the mean difference between one delay and the next."""

    messages: int
    min_ns: int | None
    mean_ns: float | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    std_ns: float | None
    jitter_ns: float | None


class DelayLog:
    """The delays of one publisher's messages, in the order in which they came."""

    def __init__(self) -> None:
        self._kept: deque[int] = deque(maxlen=MOST_KEPT)

    def add(self, delay_ns: int) -> None:
        self._kept.append(delay_ns)

    def take(self, other: DelayLog) -> None:
        self._kept.extend(other._kept)

    def delays(self) -> Delays:
        return summarise(tuple(self._kept))


def summarise(delays_ns: Sequence[int]) -> Delays:
    ordered = sorted(delays_ns)
    mean = sum(ordered) / len(ordered) if ordered else None
    steps = [abs(later - earlier) for earlier, later in pairwise(delays_ns)]
    squares = sum((delay - mean) ** 2 for delay in ordered) if mean is not None else 0.0
    return Delays(
        messages=len(ordered), min_ns=ordered[0] if ordered else None, mean_ns=mean, p50_ns=nearest_rank(ordered, 0.5),
        p90_ns=nearest_rank(ordered, 0.9), p99_ns=nearest_rank(ordered, 0.99), max_ns=ordered[-1] if ordered else None,
        std_ns=math.sqrt(squares / (len(ordered) - 1)) if len(ordered) > 1 else None,
        jitter_ns=sum(steps) / len(steps) if steps else None,
    )  # fmt: skip


def nearest_rank(ordered: Sequence[int], share: float) -> int | None:
    """The smallest value that at least `share` of all do not exceed: one that was measured, never one in between."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
