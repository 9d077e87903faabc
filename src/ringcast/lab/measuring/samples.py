"""What one part of an experiment says of its own samples: mean, deviation, order statistics. Pure.

What compares parts, runs or versions is a pipeline over `bronze.results` (`ringcast.spark.experiments`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    """Of one batch. `std` is the standard deviation of these samples (divided by n), as the papers give it."""

    number: int
    mean: float
    std: float
    p50: float
    p99: float


def quantile(samples: Sequence[float], share: float) -> float:
    """The nearest rank: a value that really occurred. Raises ValueError when there is none."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def thinned(samples: Sequence[float], most: int) -> list[float]:
    """At most so many of them (two or more), evenly by rank; the least and the largest are among them."""
    if len(samples) <= most:
        return list(samples)
    ordered = sorted(samples)
    return [ordered[at * (len(ordered) - 1) // (most - 1)] for at in range(most)]


def summarise(samples: Sequence[float]) -> Summary:
    """Raises ValueError when there are none."""
    if not samples:
        raise ValueError("no samples")
    mean = math.fsum(samples) / len(samples)
    variance = math.fsum((sample - mean) ** 2 for sample in samples) / len(samples)
    return Summary(len(samples), mean, math.sqrt(variance), quantile(samples, 0.5), quantile(samples, 0.99))


def pooled(batches: Sequence[Sequence[float]]) -> Summary:
    """All samples of all batches as one. Raises ValueError when there are none."""
    return summarise([sample for batch in batches for sample in batch])


def paired_ratio(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """The median, over the rounds in which both were measured, of one's p50 by the other's.

    Batches of one round are neighbours in time, so what slows the whole machine for a while cancels out.
    Raises ValueError when there is no round.
    """
    ratios = [quantile(one, 0.5) / quantile(other, 0.5) for one, other in zip(ours, theirs, strict=True)]
    return median(ratios)


def median(values: Sequence[float]) -> float:
    """Of an even number, the mean of the two in the middle. Raises ValueError when there is none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
