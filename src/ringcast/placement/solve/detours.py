"""Large networks whose links are too full for proxies on the way: some streams go round them. Pure.

For when `priced` finds no plan: here the streams of several tags make room for each other one by one.

First every proxy takes its cheapest place on the way (`regions`). Tags that load no link above its capacity keep those
places: each link has the least load they can give it, so nobody else is better off when they move. The other tags are
solved together as an integer program on what capacity is left, each of their streams with the nodes on its way and,
where its route passes a link that is too full, the nearest nodes beside it through which it avoids all such links.
"""

from __future__ import annotations

import dataclasses
import heapq
import math

from ringcast.placement import charges, delay
from ringcast.placement.case import Case
from ringcast.placement.solve import regions
from ringcast.placement.solve.onehot import OneHot

BESIDE = 6
"""How many places beside its way a stream is offered."""


def around(case: Case, gap: float, limit_s: float = math.inf) -> list[int] | None:
    """Places that fit, at most `gap` above the best of those that were tried; None when none of them fit. Every stream
    must have a node in time.

    Raises SolverMissing, SolverStopped.
    """
    places = regions.nearest(case)
    before = charges.loads(case, places)
    rest, moved, choices = crowded(case, places)
    if not moved:
        return places
    program = OneHot(rest, choices)
    # What stays costs what it costs, so where something moves the gap may be larger by the share that this is of all.
    share = charges.loads(rest, [places[i] for i in moved]).cost(rest.problem) / before.cost(case.problem)
    solution = program.solve(gap / share, limit_s)
    if solution is None:
        return None
    for index, place in zip(moved, program.chosen(solution), strict=True):
        places[index] = place
    return places


def crowded(case: Case, places: list[int]) -> tuple[Case, list[int], list[list[int]]]:
    """The tags that pass a link that is too full, or have a late place, on what the others leave: as a case of its own,
    with the numbers of its streams here, and their candidates."""
    problem = case.problem
    loads = charges.loads(case, places).links
    full = {e for e, link in enumerate(problem.links) if not charges.within(loads[e], link.bandwidth)}
    moving = {
        case.streams[i].tag
        for i, place in enumerate(places)
        if any(full.intersection(use.links) for use in charges.uses(case, i, place))
        or not delay.candidates(case, case.streams[i], (place,))
    }
    staying = charges.total(
        case, (use for i, place in enumerate(places) if case.streams[i].tag not in moving
               for use in charges.uses(case, i, place)),
    ).links  # fmt: skip
    links = tuple(
        dataclasses.replace(link, bandwidth=max(0.0, link.bandwidth - load))
        for link, load in zip(problem.links, staying, strict=True)
    )
    demands = tuple(demand for tag, demand in enumerate(problem.demands) if tag in moving)
    rest = Case(dataclasses.replace(problem, links=links, demands=demands), case.routes)
    moved = [i for i, stream in enumerate(case.streams) if stream.tag in moving]
    return rest, moved, _choices(rest, full)


def _choices(case: Case, full: set[int]) -> list[list[int]]:
    routes = case.routes
    clear: dict[int, list[int]] = {}
    found = []
    for stream in case.streams:
        way = case.on_the_way(stream)
        found.append(delay.near_the_way(case, stream))
        if full.isdisjoint(routes.links(stream.publisher, stream.node)):
            continue
        for root in (stream.publisher, stream.node):
            if root not in clear:
                clear[root] = routes.clear_of(root, full)
        there, on = clear[stream.publisher], clear[stream.node]
        beside = [
            (there[node] + on[node], node)
            for node in range(len(there))
            if there[node] >= 0 and on[node] >= 0 and node not in way
        ]
        near = tuple(node for _, node in heapq.nsmallest(2 * BESIDE, beside))
        found[-1] += [node for node in delay.candidates(case, stream, near) if node not in found[-1]][:BESIDE]
    return found
