"""Random task sets: streams on one node whose publishers and subscribers compute. Pure; the same seed, the same sets.

Shares of processors are drawn by UUniFast (Bini and Buttazzo), so that every way to divide the whole is as likely.
Deadlines lie in the second half of what a stream's own work leaves of its period.
"""

from __future__ import annotations

import random

import msgspec

from ringcast.admission.calibration import Calibration
from ringcast.admission.model import Link, Stream, Subscriber, System

NODE = "here"
PERIODS_S = (0.01, 0.02, 0.025, 0.04, 0.05, 0.1)
BYTES = 64.0
MOST_STREAMS = 4
LEAST_COMPUTE_S = 2e-4
THERE, MOST_LINKED = "there", 3
LINK_RATE = 12.5e6
LINKED_BYTES = (64, 1000, 8000)


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


def linked_set(seed: int, found: Calibration) -> System:
    """Two or three streams from one node to another, each of a core: publishers compute here and subscribers there, and
    what is sent shares the card, the link and the card of the other."""
    draw = random.Random(f"linked {seed}")
    count = draw.randint(2, MOST_LINKED)
    shares = [_uunifast(draw, count, draw.uniform(0.2, 0.7)) for _ in range(2)]
    streams = []
    for i, (here, there) in enumerate(zip(*shares, strict=True)):
        period = draw.choice(PERIODS_S)
        before, after = (max(LEAST_COMPUTE_S / 2, share * period) for share in (here, there))
        deadline = before + after + max(period - before - after, period / 4) * draw.uniform(0.5, 1.0)
        reader = Subscriber(name="s", node=THERE, deadline_s=deadline, compute_s=after)
        streams.append(
            Stream(tag=f"linked{seed}/t{i}", node=NODE, period_s=period, bytes=float(draw.choice(LINKED_BYTES)),
                   compute_s=before, transport="udp", subscribers=(reader,))
        )  # fmt: skip
    nodes = tuple(msgspec.structs.replace(found.node(name, 1), card=LINK_RATE) for name in (NODE, THERE))
    link = Link(a=NODE, b=THERE, bandwidth=LINK_RATE)
    return System(nodes=nodes, links=(link,), streams=tuple(streams), costs=found.costs)


def _uunifast(draw: random.Random, count: int, total: float) -> list[float]:
    shares, left = [], total
    for i in range(1, count):
        rest = left * draw.random() ** (1 / (count - i))
        shares.append(left - rest)
        left = rest
    return [*shares, left]
