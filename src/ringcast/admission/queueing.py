"""How long a message takes over a link: network calculus. Pure, in nanoseconds and bytes.

A flow is a token bucket: at most `burst_bytes` at once and `rate` bytes per second on average. A link that serves
classes strictly by priority, and packets of a class in order, leaves a class the rate that the classes above do not
take, after their bursts and one packet of a lower class that has been begun (Le Boudec and Thiran, Network Calculus,
chapter 1 and 6).

What comes from another link comes no faster than that link carries it, packet by packet. So a burst that has waited for
one link is not waited for again by the next one of the same rate.
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
    via: int = -1
    """The link and direction that it comes from; flows of one number come no faster together than that link carries
    them. -1: from a program."""
    peak: float = math.inf
    packet_bytes: int = 0
    """Of that link: its bandwidth, and its largest packet."""


def bucket(
    below: int, wire_bytes: int, period_ns: int, jitter_ns: float, losses: int = 0, repeats: float | None = None
) -> Flow:
    """A message every period, so much early or late. One may be sent again as often as it can be lost; on average each
    is sent again `repeats` times (None: as often)."""
    rate = wire_bytes * (1 + (losses if repeats is None else repeats)) * NS / period_ns
    return Flow(below, wire_bytes * (1 + losses) + rate * jitter_ns / NS, rate)


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
    before = begun + math.fsum(flow.burst_bytes for flow in above)
    left = link.bandwidth - math.fsum(flow.rate for flow in above)
    same = [own, *beside]
    if left <= 0 or math.isinf(before + math.fsum(flow.burst_bytes for flow in same)):
        return math.inf
    if math.fsum(flow.rate for flow in same) > left:
        return math.inf
    waits = before / left + _backlog_s(same, left)
    return link.latency_s * NS + math.ceil(waits * NS / GRAIN_NS) * GRAIN_NS


def _backlog_s(flows: Sequence[Flow], rate: float) -> float:
    """The longest that a byte of flows which are served in order waits, at that rate: what has come until then, less
    what has been served. What comes grows ever slower, so it is longest where a burst has come completely."""
    groups: dict[int, list[Flow]] = {}
    free = [flow for flow in flows if flow.via < 0]
    for flow in flows:
        if flow.via >= 0:
            groups.setdefault(flow.via, []).append(flow)
    # Each group: its burst and rate, and the packet and rate with which its link lets it come.
    shapes = [
        (math.fsum(one.burst_bytes for one in group), math.fsum(one.rate for one in group),
         max(one.packet_bytes for one in group), group[0].peak)
        for group in groups.values()
    ]  # fmt: skip
    times = {0.0} | {
        (burst - packet) / (peak - mean) for burst, mean, packet, peak in shapes if burst > packet and peak > mean
    }

    def come(at_s: float) -> float:
        unlimited = math.fsum(one.burst_bytes + one.rate * at_s for one in free)
        return unlimited + math.fsum(
            min(burst + mean * at_s, packet + peak * at_s) for burst, mean, packet, peak in shapes
        )

    return max(come(at_s) / rate - at_s for at_s in times)
