"""Order statistics over pooled samples. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of `ordered` lies (nearest rank: a value that really occurred)."""
    if not ordered:
        raise ValueError("no samples")
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def quantiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """p50, p99 and p99.9."""
    ordered = sorted(samples)
    return quantile(ordered, 0.5), quantile(ordered, 0.99), quantile(ordered, 0.999)


def median(values: Sequence[float]) -> float:
    """The middle value; of an even number, the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def paired_ratio(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float:
    """The median of one by the other over the rounds that both have: neighbours in time, so that what slows the whole
    machine for a while cancels out. Raises ValueError when there is no such round."""
    rounds = ours.keys() & theirs.keys()
    if not rounds:
        raise ValueError("no round in common")
    return median([ours[number] / theirs[number] for number in rounds])
