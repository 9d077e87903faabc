"""All places tried, one after the other: the oracle for small networks. Pure.

`one_proxy` is Appendix A of paper 001, one proxy for all subscribers of a tag, with its test the right way round: a
place is infeasible when the delay is above what is required, and the paper's line 4 has it below. `every_place` tries
every combination for all subscribers of all tags, and knows capacities too. Neither knows the integer program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from ringcast.placement import charges, delay, plan
from ringcast.placement.case import Case
from ringcast.placement.plan import Plan

MOST = 2_000_000
"""More combinations than this are not tried."""


class TooMany(ValueError):
    """The network is too large to try all places."""

    def __init__(self, combinations: int) -> None:
        self.combinations = combinations
        super().__init__(f"{combinations} combinations of places are too many to try; at most {MOST}")


@dataclass(frozen=True)
class Try:
    """One turn of Appendix A's outer loop."""

    proxy: str
    delays_s: tuple[float, ...]
    cost: float
    feasible: bool


def one_proxy(case: Case, tag: int = 0) -> list[Try]:
    """Every node as the one proxy of a tag, in the order of the problem; infeasible ones have their cost too."""
    streams = [stream for stream in case.streams if stream.tag == tag]
    index = [i for i, stream in enumerate(case.streams) if stream.tag == tag]
    tries = []
    for node in case.hosts:
        delays = tuple(delay.worst_case(case, stream, node).total_s for stream in streams)
        loads = charges.total(case, (use for i in index for use in charges.uses(case, i, node)))
        good = all(delay.in_time(late, stream.deadline_s) for late, stream in zip(delays, streams, strict=True))
        tries.append(Try(case.name(node), delays, loads.cost(case.problem), good and loads.fits(case.problem)))
    return tries


def every_place(case: Case) -> Plan:
    """The cheapest of all combinations; infeasible when none fits. Raises TooMany."""
    choices = [delay.candidates(case, stream, case.hosts) for stream in case.streams]
    if (combinations := math.prod(map(len, choices))) > MOST:
        raise TooMany(combinations)
    uses = [{node: list(charges.uses(case, i, node)) for node in nodes} for i, nodes in enumerate(choices)]
    best: tuple[float, tuple[int, ...]] | None = None
    for places in itertools.product(*choices):
        if not charges.within_proxies(case, places):
            continue
        loads = charges.total(case, _chosen(uses, places))
        cost = loads.cost(case.problem)
        if (best is None or cost < best[0]) and loads.fits(case.problem):
            best = cost, places
    return Plan(case.problem, False) if best is None else plan.made(case, best[1])


def _chosen(uses: list[dict[int, list[charges.Use]]], places: tuple[int, ...]) -> Iterator[charges.Use]:
    for found, place in zip(uses, places, strict=True):
        yield from found[place]
