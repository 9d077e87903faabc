"""A plan beside what people do without one: all proxies at the publisher, or all at the subscriber. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.placement import charges, delay, plan
from ringcast.placement.case import Case
from ringcast.placement.plan import Plan


@dataclass(frozen=True)
class Other:
    """`late` counts the subscribers that get data after their deadline, `full` the links and nodes above capacity."""

    name: str
    plan: Plan
    late: int
    full: int

    @property
    def good(self) -> bool:
        return not self.late and not self.full


def others(case: Case) -> list[Other]:
    return [
        _other(case, "all at the publisher", [stream.publisher for stream in case.streams]),
        _other(case, "all at the subscriber", [stream.node for stream in case.streams]),
    ]


def _other(case: Case, name: str, places: list[int]) -> Other:
    made = plan.made(case, places)
    late = sum(not delay.in_time(one.delay.total_s, one.deadline_s) for one in made.streams)
    links = sum(
        not charges.within(load, link.bandwidth) for load, link in zip(made.links, case.problem.links, strict=True)
    )
    nodes = sum(not charges.within(load, node.cpu) for load, node in zip(made.nodes, case.problem.nodes, strict=True))
    return Other(name, made, late, links + nodes)
