"""Statistics of measurements: mean, deviation, order statistics, and how straight a line is. Pure."""

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


class Line(NamedTuple):
    """The straight line nearest to some points; `r` is how well they lie on it, from -1 to 1."""

    slope: float
    intercept: float
    r: float


def quantile(samples: Sequence[float], share: float) -> float:
    """The nearest rank: a value that really occurred. Raises ValueError when there is none."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarise(samples: Sequence[float]) -> Summary:
    """Raises ValueError when there are none."""
    if not samples:
        raise ValueError("no samples")
    mean = math.fsum(samples) / len(samples)
    variance = math.fsum((sample - mean) ** 2 for sample in samples) / len(samples)
    return Summary(len(samples), mean, math.sqrt(variance), quantile(samples, 0.5), quantile(samples, 0.99))


def typical(batches: Sequence[Sequence[float]]) -> Summary:
    """The batch whose mean is the median of all batches.

    The papers report one batch; of several taken at different times this one depends least on what else the machine
    did. Raises ValueError when there is none.
    """
    summaries = sorted((summarise(batch) for batch in batches), key=lambda summary: summary.mean)
    if not summaries:
        raise ValueError("no batches")
    return summaries[(len(summaries) - 1) // 2]


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


def paired_difference(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """The same for what one's p50 is above the other's. Raises ValueError when there is no round."""
    return median([quantile(one, 0.5) - quantile(other, 0.5) for one, other in zip(ours, theirs, strict=True)])


def median(values: Sequence[float]) -> float:
    """Of an even number, the mean of the two in the middle. Raises ValueError when there is none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """By least squares. Raises ValueError for fewer than two different x."""
    count = len(points)
    mean_x = math.fsum(x for x, _ in points) / max(count, 1)
    mean_y = math.fsum(y for _, y in points) / max(count, 1)
    spread_x = math.fsum((x - mean_x) ** 2 for x, _ in points)
    spread_y = math.fsum((y - mean_y) ** 2 for _, y in points)
    if spread_x == 0:
        raise ValueError("a line needs two points with different x")
    both = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    slope = both / spread_x
    r = both / math.sqrt(spread_x * spread_y) if spread_y else 1.0
    return Line(slope, mean_y - slope * mean_x, r)
