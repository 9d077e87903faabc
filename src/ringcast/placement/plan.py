"""The answer: where each proxy sits, and what follows from it. Pure values; `document` is what `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ringcast.placement import charges, delay
from ringcast.placement.case import Case
from ringcast.placement.delay import Delay
from ringcast.placement.model import Problem


@dataclass(frozen=True)
class Placed:
    """One subscriber's stream. `delay` is the paper's worst case, `measured` what the measured costs add up to."""

    tag: str
    subscriber: str
    proxy: str
    path: tuple[str, ...]
    delay: Delay
    measured: Delay
    age_s: float
    deadline_s: float


@dataclass(frozen=True)
class Reason:
    """Why there is no plan. `kind` is subscriber, link, node or proxies; `by` how much is missing, in `unit`.

    `nearest` are sentences: what would fit.
    """

    kind: str
    name: str
    by: float | None
    unit: str
    sentence: str
    nearest: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "name": self.name, "by": self.by, "unit": self.unit, "sentence": self.sentence,
            "nearest": list(self.nearest),
        }  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """`gap` is how far `cost` is above a proven lower bound of the optimum, as a share of the bound; 0 when it is the
    optimum, NaN when nobody knows.

    `places` has the proxy's node of each subscriber by number, tag after tag. `scope` says for which places the bound
    holds: all nodes, or those on the way from publisher to subscriber; without a plan, where none was found.
    """

    problem: Problem
    feasible: bool
    cost: float = math.inf
    gap: float = 0.0
    scope: str = "all nodes"
    places: tuple[int, ...] = ()
    streams: tuple[Placed, ...] = ()
    links: tuple[float, ...] = ()
    nodes: tuple[float, ...] = ()
    reasons: tuple[Reason, ...] = field(default=())

    def document(self) -> dict[str, Any]:
        return {
            "feasible": self.feasible,
            "cost": self.cost if self.feasible else None,
            "gap": self.gap if self.feasible and not math.isnan(self.gap) else None,
            "scope": self.scope,
            "streams": [
                {
                    "tag": one.tag, "subscriber": one.subscriber, "proxy": one.proxy, "path": list(one.path),
                    "delay_s": one.delay.total_s, "measured_s": one.measured.total_s, "age_s": one.age_s,
                }
                for one in self.streams
            ],
            "links": [
                {"a": link.a, "b": link.b, "load": load}
                for link, load in zip(self.problem.links, self.links, strict=bool(self.feasible))
            ],
            "nodes": [
                {"name": node.name, "load": load}
                for node, load in zip(self.problem.nodes, self.nodes, strict=bool(self.feasible))
            ],
            "reasons": [reason.document() for reason in self.reasons],
        }  # fmt: skip


def made(case: Case, places: Sequence[int], gap: float = 0.0, scope: str = "all nodes") -> Plan:
    """The plan with proxies at `places`, whatever anybody thinks of it."""
    loads = charges.loads(case, places)
    return Plan(
        case.problem, True, loads.cost(case.problem), gap, scope, tuple(places),
        tuple(_placed(case, index, place) for index, place in enumerate(places)),
        tuple(loads.links), tuple(loads.nodes),
    )  # fmt: skip


def _placed(case: Case, index: int, proxy: int) -> Placed:
    stream = case.streams[index]
    worst = delay.worst_case(case, stream, proxy)
    return Placed(
        stream.demand.tag, stream.subscriber.name, case.name(proxy),
        tuple(case.name(node) for node in case.path(stream, proxy)), worst, delay.measured(case, stream, proxy),
        delay.age_s(stream, worst), stream.deadline_s,
    )  # fmt: skip
