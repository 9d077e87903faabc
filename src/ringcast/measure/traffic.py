"""Loss, bandwidth and overhead, from counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def loss_share(expected: int, received: int) -> float:
    """Of what should have come; 0 while nothing should have. Raises ValueError when more came than should have."""
    if not 0 <= received <= expected:
        raise ValueError(f"received {received} of {expected}")
    return (expected - received) / expected if expected else 0.0


def bandwidth(sizes: Sequence[int], times_s: Sequence[float], window_s: float) -> tuple[float, float]:
    """Mean and standard deviation of bytes per second, over windows that follow each other from the first time on.

    A window in which nothing came counts as 0. Raises ValueError for no samples or a window of no length.
    """
    if not sizes or len(sizes) != len(times_s) or window_s <= 0:
        raise ValueError("sizes and times in pairs, and a window, are needed")
    place = ((np.asarray(times_s) - min(times_s)) / window_s).astype(np.int64)
    rates = np.bincount(place, weights=np.asarray(sizes, dtype=np.float64)) / window_s
    return float(rates.mean()), float(rates.std())


def overhead(useful_bytes: int, all_bytes: int) -> float:
    """Bytes that were sent besides the useful ones, per useful byte. Raises ValueError when nothing was useful."""
    if useful_bytes <= 0:
        raise ValueError("nothing useful was sent")
    return (all_bytes - useful_bytes) / useful_bytes
