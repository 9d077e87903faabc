"""A subscriber's counters as numbers that can be read. Pure: a histogram in, percentiles out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec


class SubscriberStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscriber has seen so far. Latencies are from `send` to `recv`, rounded up to the histogram's next bound;
    None before the first message."""

    received: int
    lost: int
    bytes: int
    corrupt: int
    rings: int
    latency_p50_ns: int | None
    latency_p90_ns: int | None
    latency_p99_ns: int | None
    latency_p999_ns: int | None
    latency_max_ns: int | None


def percentile(histogram: Sequence[int], share: float, bound_ns: Callable[[int], int]) -> int | None:
    """The bound of the bucket below which `share` (0 to 1) of all entries lie; None when there are no entries."""
    total = sum(histogram)
    if total == 0:
        return None
    wanted = max(1, -int(-share * total // 1))
    seen = 0
    for bucket, count in enumerate(histogram):
        seen += count
        if seen >= wanted:
            return bound_ns(bucket)
    raise AssertionError("a share is at most 1")


def summarise(counters: Mapping[str, int], histogram: Sequence[int], bound_ns: Callable[[int], int]) -> SubscriberStats:
    p50, p90, p99, p999, highest = (percentile(histogram, s, bound_ns) for s in (0.5, 0.9, 0.99, 0.999, 1.0))
    return SubscriberStats(
        received=counters["received"],
        lost=counters["lost"],
        bytes=counters["bytes"],
        corrupt=counters["corrupt"],
        rings=counters["rings"],
        latency_p50_ns=p50,
        latency_p90_ns=p90,
        latency_p99_ns=p99,
        latency_p999_ns=p999,
        latency_max_ns=highest,
    )
