"""Latency and jitter of one stream. Pure: sequences of seconds in, seconds out.

Paper 002 says jitter in two ways: for periodic data the variation from one period to the next, and, as it was measured
there, the standard deviation of the latency. Both are here; neither is called just "jitter".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Samples = Sequence[float] | npt.NDArray[np.float64]


class Latency(NamedTuple):
    number: int
    mean: float
    std: float
    p50: float
    p99: float
    most: float


def summarise(latencies: Samples) -> Latency:
    """Raises ValueError when there are none."""
    values = _array(latencies)
    p50, p99 = np.quantile(values, (0.5, 0.99), method="inverted_cdf")
    return Latency(len(values), float(values.mean()), float(values.std()), float(p50), float(p99), float(values.max()))


def deviation_jitter(latencies: Samples) -> float:
    """Standard deviation of the latency. Raises ValueError when there are no samples."""
    return float(_array(latencies).std())


def period_jitter(arrivals: Samples) -> float:
    """Mean difference between a period and the next, from times of arrival in order; 0 for fewer than three."""
    periods = np.diff(np.asarray(arrivals, dtype=np.float64))
    return float(np.abs(np.diff(periods)).mean()) if len(periods) > 1 else 0.0


def missed_share(latencies: Samples, sent: int, deadline: float) -> float:
    """Which share of what was sent came later than the deadline, or never. Raises ValueError when nothing was sent."""
    if sent <= 0:
        raise ValueError("nothing was sent")
    in_time = int((np.asarray(latencies, dtype=np.float64) <= deadline).sum())
    return (sent - in_time) / sent


def _array(samples: Samples) -> npt.NDArray[np.float64]:
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no samples")
    return values
