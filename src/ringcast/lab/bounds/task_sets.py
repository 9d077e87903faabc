"""Random task sets: streams on one node whose publishers and subscribers compute. Pure; the same seed, the same sets.

Shares of processors are drawn by UUniFast (Bini and Buttazzo), so that every way to divide the whole is as likely.
Deadlines lie in the second half of what a stream's own work leaves of its period.
"""

from __future__ import annotations

import random

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import Stream, Subscriber, System

NODE = "here"
PERIODS_S = (0.01, 0.02, 0.025, 0.04, 0.05, 0.1)
BYTES = 64.0
MOST_STREAMS = 4
LEAST_COMPUTE_S = 2e-4


def task_set(seed: int, cores: int, found: Calibration) -> System:
    """Two to four streams that together take from a fifth to nine tenths of the node."""
    draw = random.Random(seed)
    count = draw.randint(2, MOST_STREAMS)
    shares = _uunifast(draw, count, cores * draw.uniform(0.2, 0.9))
    streams = []
    for i, share in enumerate(shares):
        period = draw.choice(PERIODS_S)
        compute = max(LEAST_COMPUTE_S, min(share, 0.8) * period)
        before = compute * draw.uniform(0.3, 0.7)
        after = compute - before
        # Between its own work and its period: a shorter one no schedule could keep, and such a set says nothing.
        deadline = compute + (period - compute) * draw.uniform(0.5, 1.0)
        reader = Subscriber(name="s", node=NODE, deadline_s=deadline, compute_s=after)
        tag = f"set{seed}/t{i}"
        streams.append(
            Stream(tag=tag, node=NODE, period_s=period, bytes=BYTES, compute_s=before, subscribers=(reader,))
        )
    return System(nodes=(found.node(NODE, cores),), streams=tuple(streams), costs=found.costs)


def _uunifast(draw: random.Random, count: int, total: float) -> list[float]:
    shares, left = [], total
    for i in range(1, count):
        rest = left * draw.random() ** (1 / (count - i))
        shares.append(left - rest)
        left = rest
    return [*shares, left]
