"""Places without the solver: every combination where there are few, else one subscriber after the other. Pure.

The rule, for many combinations: begin with the cheapest of "all at the publisher", "all at the subscriber" and, where
`regions` knows how, the least load of every link. Then, until nothing makes the whole cheaper: move all subscribers of
a tag, or those that are nearer to it, to the node that saves most by it; then each by itself, with those that want the
same on the same node. (A node is worth the whole stream only when several share it, so single moves alone do not find
it.) What would exceed a capacity is no place, unless all do. The result is good, not proven: `scope` says so, and the
gap is not known. Needs neither the solver nor numpy, so that a daemon may run it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

from ringcast.placement import charges, delay, plan
from ringcast.placement.case import Case, Stream
from ringcast.placement.plan import Plan
from ringcast.placement.solve import regions, search

FEW = 2_000
"""So many combinations are all tried."""
BY_RULE = "the rule without a solver"
_ROUNDS = 20
_BETTER = 1e-9
"""Relative: less is noise of sums."""


def place(case: Case) -> Plan:
    """Infeasible, with reasons, only where a deadline cannot be met or what is pinned exceeds a capacity by itself."""
    choices = [delay.candidates(case, stream, case.hosts) for stream in case.streams]
    if late := [_late(case.streams[i]) for i, able in enumerate(choices) if not able]:
        return Plan(case.problem, False, scope=BY_RULE, reasons=tuple(late))
    if math.prod(map(len, choices)) <= FEW:
        found = search.every_place(case)
        return near(case, found) if found.feasible else Plan(case.problem, False, reasons=(_full(),))
    groups = _groups(case, choices)
    tried = [_descend(case, start, groups, choices) for start in _starts(case, choices)]
    fits, _, places = min(tried)
    if not fits[0]:
        return near(case, plan.made(case, places, math.nan, BY_RULE))
    return Plan(case.problem, False, scope=BY_RULE, reasons=(_full(),))


def near(case: Case, found: Plan) -> Plan:
    """The same plan with every proxy that can be at its publisher, or else at its subscriber, for the same cost: a
    proxy in between that saves nothing is one more thing that can fail."""
    places = list(found.places)
    best = _value(case, places)
    for index, stream in enumerate(case.streams):
        able = delay.candidates(case, stream, case.hosts)
        for place in (stream.publisher, stream.node):
            if place == places[index]:
                break
            if place in able:
                other = [*places[:index], place, *places[index + 1 :]]
                value = _value(case, other)
                if value[0] <= best[0] and value[1] <= best[1] * (1 + _BETTER):
                    places, best = other, value
                    break
    return found if places == list(found.places) else plan.made(case, places, found.gap, found.scope)


_Value = tuple[tuple[bool, float], float]
"""Whether and by how much capacities are exceeded, then the cost: the less the better."""


def _value(case: Case, places: list[int]) -> _Value:
    loads = charges.loads(case, places)
    over = sum(
        max(0.0, load / limit - 1) if limit else math.inf
        for load, limit in (
            *zip(loads.links, (link.bandwidth for link in case.problem.links), strict=True),
            *zip(loads.nodes, (node.cpu for node in case.problem.nodes), strict=True),
        )
        if not charges.within(load, limit)
    )
    wrong = over > 0 or not charges.within_proxies(case, places)
    return (wrong, over), loads.cost(case.problem)


def _starts(case: Case, choices: list[list[int]]) -> list[list[int]]:
    wishes = [[stream.publisher for stream in case.streams], [stream.node for stream in case.streams]]
    free = dataclasses.replace(case.problem, charge="multicast")
    if regions.suits(free):
        wishes.append(regions.nearest(Case(free, case.routes)))
    return [[place if place in able else able[0] for place, able in zip(wish, choices, strict=True)] for wish in wishes]


def _descend(
    case: Case, start: list[int], groups: list[list[int]], choices: list[list[int]]
) -> tuple[tuple[bool, float], float, list[int]]:  # fmt: skip
    places, best = list(start), _value(case, start)
    for _ in range(_ROUNDS):
        before = best
        tries = [_changed(places, change) for change in _together(case, groups, choices)]
        places, best = min(((other, _value(case, other)) for other in [places, *tries]), key=lambda pair: pair[1])
        for change in _alone(groups, choices):
            other = _changed(places, change)
            value = best if other == places else _value(case, other)
            if _is_better(value, best):
                places, best = other, value
        if not _is_better(best, before):
            break
    return (*best, places)


Move = Callable[[int, int], int]
"""A stream and its place in, its place then out."""


def _changed(places: list[int], change: Move) -> list[int]:
    return [change(index, place) for index, place in enumerate(places)]


def _is_better(value: _Value, than: _Value) -> bool:
    return value[0] < than[0] or (value[0] == than[0] and value[1] < than[1] * (1 - _BETTER))


def _alone(groups: list[list[int]], choices: list[list[int]]) -> Iterator[Move]:
    for members in groups:
        for node in choices[members[0]]:

            def moved(index: int, place: int, here: frozenset[int] = frozenset(members), to: int = node) -> int:
                return to if index in here else place

            yield moved


def _together(case: Case, groups: list[list[int]], choices: list[list[int]]) -> Iterator[Move]:
    """All of a tag to a node, or those of them that it is nearer to than their place."""
    free = {index for members in groups for index in members}
    hops = case.routes.hops
    for tag in range(len(case.problem.demands)):
        here = frozenset(index for index in free if case.streams[index].tag == tag)
        for node in sorted({node for index in here for node in choices[index]}):

            def moved(index: int, place: int, here: frozenset[int] = here, to: int = node) -> int:
                return to if index in here and to in choices[index] else place

            def nearer(index: int, place: int, change: Move = moved, to: int = node) -> int:
                end = case.streams[index].node
                return change(index, place) if hops(to, end) < hops(place, end) else place

            yield moved
            yield nearer


def _groups(case: Case, choices: list[list[int]]) -> list[list[int]]:
    """Those of one node that want the same, where there is a choice."""
    found: dict[object, list[int]] = {}
    for index, stream in enumerate(case.streams):
        if len(choices[index]) > 1:
            key = (stream.tag, stream.node, stream.wanted, tuple(choices[index]))
            found.setdefault(key, []).append(index)
    return list(found.values())


def _late(stream: Stream) -> plan.Reason:
    name = stream.subscriber.name
    return plan.Reason(
        "subscriber", name, None, "s",
        f"subscriber {name!r} of tag {stream.demand.tag!r} gets nothing within {stream.deadline_s:.6g} s",
    )  # fmt: skip


def _full() -> plan.Reason:
    return plan.Reason(
        "link", "", None, "", "no place was found that keeps every link and node within its capacity",
        ("the extra 'placement' says what is exceeded and what would fit",),
    )  # fmt: skip
