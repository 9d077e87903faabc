"""Bandwidth alone, proxies on the way: the cheapest places without a solver, however many subscribers there are. Pure.

From the publisher of a tag a tree of routes leads to its subscribers. With multicast, the **region** of a tag is the
part of that tree that carries the full stream: when a link is in it, so is the one before it. A link outside carries
each scaled content that is wanted beyond it once. Given the region, every proxy belongs where its route leaves it. A
link's load is F inside and C outside, with F the rate of the full stream and C those of all contents wanted beyond it.
C never grows along a route, so taking the smaller of the two on each link is a region already; and a deadline asks for
a first part of a route to be inside, because the delay never grows when a proxy moves towards the subscriber. With
unicast the same holds with a tree for each subscriber: its proxy is as near to the publisher as the deadline allows.

So every link has its least load **at the same time**: capacities of links never move a proxy along the way. They
decide whether there is a plan, or ask for a proxy beside the way (`detours`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from ringcast.placement import delay
from ringcast.placement.case import Case, Content, Stream
from ringcast.placement.model import Problem


def suits(problem: Problem) -> bool:
    """Whether bandwidth alone decides: no CPU in the cost or as a limit, no limit of proxies, legs not shared alone,
    every node can hold one, and none is where it is already."""
    costs = problem.costs
    no_cpu = all(math.isinf(node.cpu) for node in problem.nodes) or not (costs.in_s or costs.out_s or costs.scale_s)
    plain = problem.charge in ("unicast", "multicast")
    able = all(node.host for node in problem.nodes)
    able = able and all(one.proxy is None for demand in problem.demands for one in demand.subscribers)
    return plain and able and problem.objective.cpu == 0 and no_cpu and problem.max_proxies_per_tag is None


def nearest(case: Case) -> list[int]:
    """The place of every stream, on its way: late, at the subscriber, where no node of it meets the deadline."""
    first = [_first_in_time(case, stream) for stream in case.streams]
    if case.problem.charge == "unicast":
        return [case.on_the_way(stream)[depth] for stream, depth in zip(case.streams, first, strict=True)]
    trees: dict[int, dict[int, _Edge]] = defaultdict(dict)
    for stream, depth in zip(case.streams, first, strict=True):
        _add(case, trees[stream.tag], stream, depth)
    return [_leaves(case, trees[stream.tag], stream) for stream in case.streams]


@dataclass
class _Edge:
    """A link of a tag's tree, by the node at its far end."""

    full: float
    wanted: dict[Content, float] = field(default_factory=dict)
    forced: bool = False

    @property
    def inside(self) -> bool:
        # Equal is outside: the fewer messages, the less work.
        return self.forced or self.full < math.fsum(self.wanted.values())


def _first_in_time(case: Case, stream: Stream) -> int:
    way = case.on_the_way(stream)
    in_time = (
        depth for depth, node in enumerate(way)
        if delay.in_time(delay.worst_case(case, stream, node).total_s, stream.deadline_s)
    )  # fmt: skip
    return next(in_time, len(way) - 1)


def _add(case: Case, tree: dict[int, _Edge], stream: Stream, must: int) -> None:
    for depth, node in enumerate(case.on_the_way(stream)[1:]):
        edge = tree.get(node)
        if edge is None:
            edge = tree[node] = _Edge(stream.rate(stream.full))
        edge.wanted[stream.wanted] = stream.rate(stream.wanted)
        edge.forced |= depth < must


def _leaves(case: Case, tree: dict[int, _Edge], stream: Stream) -> int:
    place = stream.publisher
    for node in case.on_the_way(stream)[1:]:
        if not tree[node].inside:
            break
        place = node
    return place
