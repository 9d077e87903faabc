"""How long a message takes over a link: network calculus. Pure, in nanoseconds and bytes.

A flow is a token bucket: at most `burst_bytes` at once and `rate` bytes per second on average. A link that serves
classes strictly by priority, and packets of a class in order, leaves a class the rate that the classes above do not
take, after their bursts and one packet of a lower class that has been begun (Le Boudec and Thiran, Network Calculus,
chapter 1 and 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ringcast.admission.model import NS, Link

GRAIN_NS = 100
"""Delays are rounded up to this. Two flows that lengthen each other's bursts would otherwise do so by ever smaller
amounts, for very many rounds."""


class Flow(NamedTuple):
    """`below` is how many classes are above this one: 0 goes first."""

    below: int
    burst_bytes: float
    rate: float


def bucket(below: int, wire_bytes: int, period_ns: int, jitter_ns: float, losses: int = 0) -> Flow:
    """A message every period, so much early or late, each sent again as often as it can be lost."""
    size = wire_bytes * (1 + losses)
    rate = size * NS / period_ns
    return Flow(below, size + rate * jitter_ns / NS, rate)


def delay_ns(own: Flow, others: Sequence[Flow], link: Link, undeclared_below: int) -> float:
    """From when a message is ready to go until its last byte is on the other side. Infinite: no bound.

    Traffic that nobody declared is in the class `undeclared_below`.
    """
    one_packet = link.packet_bytes
    undeclared = Flow(undeclared_below, max(link.other_burst, one_packet), link.other_rate)
    flows = [*others, undeclared]
    if not link.priorities:
        above, beside, begun = [], flows, 0
    else:
        above = [flow for flow in flows if flow.below < own.below]
        beside = [flow for flow in flows if flow.below == own.below]
        begun = one_packet if any(flow.below > own.below for flow in flows) else 0
    burst = begun + math.fsum(flow.burst_bytes for flow in (own, *above, *beside))
    left = link.bandwidth - math.fsum(flow.rate for flow in above)
    if left <= 0 or math.isinf(burst) or own.rate + math.fsum(flow.rate for flow in beside) > left:
        return math.inf
    return link.latency_s * NS + math.ceil(burst / left * NS / GRAIN_NS) * GRAIN_NS
