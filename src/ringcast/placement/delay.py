"""How late a message comes, with its proxy on a given node. Pure.

Two models. The worst case of paper 001 (2.2) gives every hop one period: p T before the proxy, q T' after it, where
T' = n T; what links need by themselves (latency) comes on top, because the paper's period is for nodes. Deadlines are
held against it. The measured model adds what was measured: the CPU time of each end and of the proxy, latency, and the
time a link needs to put a message on the wire. Neither is the age of data: between two scaled messages the last one
grows T' old (`age_s`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ringcast.placement.case import Case, Stream

_SLACK = 1e-9
"""Relative: 0.1 + 0.2 must meet a deadline of 0.3."""


@dataclass(frozen=True)
class Delay:
    """The parts of a delay, in seconds: before the proxy, at and after it, and what the links need by themselves."""

    full_s: float
    scaled_s: float
    latency_s: float

    @property
    def total_s(self) -> float:
        return self.full_s + self.scaled_s + self.latency_s


def worst_case(case: Case, stream: Stream, proxy: int) -> Delay:
    """Paper 001, 2.2, plus the latency of links."""
    routes = case.routes
    return Delay(
        routes.hops(stream.publisher, proxy) * stream.period_s,
        routes.hops(proxy, stream.node) * stream.scaled_period_s,
        routes.latency_s(stream.publisher, proxy) + routes.latency_s(proxy, stream.node),
    )


def measured(case: Case, stream: Stream, proxy: int) -> Delay:
    """With the measured costs of sending, receiving and scaling; nobody waits for a period to end."""
    costs, routes = case.problem.costs, case.routes
    there = costs.out_s + costs.in_s if proxy != stream.publisher else 0.0
    back = costs.out_s + costs.in_s if proxy != stream.node else 0.0
    return Delay(
        there + _on_the_wire(case, stream.publisher, proxy, stream.full.bytes),
        costs.scale_s + back + _on_the_wire(case, proxy, stream.node, stream.wanted.bytes),
        routes.latency_s(stream.publisher, proxy) + routes.latency_s(proxy, stream.node),
    )


def age_s(stream: Stream, delay: Delay) -> float:
    """How old the newest data can be: n T until the next scaled message, and its delay."""
    return stream.scaled_period_s + delay.total_s


def in_time(delay_s: float, deadline_s: float) -> bool:
    return delay_s <= latest(deadline_s)


def latest(deadline_s: float) -> float:
    """What still counts as in time."""
    return deadline_s * (1 + _SLACK)


def candidates(case: Case, stream: Stream, nodes: tuple[int, ...]) -> list[int]:
    """Those that can hold a proxy, and from which the deadline is met: this presolves the delay constraint. Of a proxy
    that is where it is, that node alone."""
    if stream.subscriber.proxy is not None:
        return [case.routes.number[stream.subscriber.proxy]]
    able = [node for node in nodes if case.problem.nodes[node].host]
    if math.isinf(stream.deadline_s):
        return able
    return [node for node in able if in_time(worst_case(case, stream, node).total_s, stream.deadline_s)]


def near_the_way(case: Case, stream: Stream) -> list[int]:
    """The candidates on its way; all, where none of those is in time: a way with more hops may have less latency."""
    return candidates(case, stream, case.on_the_way(stream)) or candidates(case, stream, case.hosts)


def _on_the_wire(case: Case, source: int, to: int, size: float) -> float:
    return sum(size / case.problem.links[e].bandwidth for e in case.routes.links(source, to))
