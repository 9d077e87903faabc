"""Why there is no plan: which subscriber, link or node, by how much, and the nearest thing that would fit. Pure.

Deadlines come first: a subscriber that no place serves in time needs a longer deadline, whatever else. Then capacities:
those that must be exceeded when the sum of the shares by which they are exceeded is least. What would fit is found by
solving again: with longer deadlines (the least sum of what they are longer), with larger factors, with more proxies.
"""

from __future__ import annotations

import dataclasses
import math

from ringcast.placement import delay
from ringcast.placement.case import Case, Stream
from ringcast.placement.model import Problem, changed
from ringcast.placement.plan import Reason
from ringcast.placement.solve import detours, regions
from ringcast.placement.solve.onehot import OneHot
from ringcast.placement.solve.program import Program

FACTORS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128)
"""Times the factor of a subscriber, tried in this order."""
_MOST_TRIED = 40
"""With more subscribers than this, larger factors are tried for all together only."""


def too_late(case: Case) -> list[Reason]:
    """The subscribers that no place of a proxy serves in time."""
    return [
        _late(case, stream)
        for stream in case.streams
        if not delay.candidates(case, stream, (stream.node,))
        # A way with more hops may have less latency.
        and not delay.candidates(case, stream, case.hosts)
    ]


def too_full(case: Case, everywhere: bool, limit_s: float = math.inf) -> list[Reason]:
    """The links and nodes that cannot carry it. Raises SolverMissing, SolverStopped."""
    over = _program(case, everywhere).overloads(limit_s)
    if over is None:
        return [_too_few_proxies(case, everywhere, limit_s)]
    nearest = [*_longer_deadlines(case, everywhere, limit_s), *_larger_factors(case, everywhere, limit_s)]
    return [_overload(case, kind, index, by, nearest) for (kind, index), by in over]


def _late(case: Case, stream: Stream) -> Reason:
    best, place = min((delay.worst_case(case, stream, node).total_s, node) for node in case.hosts)
    name, tag = stream.subscriber.name, stream.demand.tag
    hops = case.routes.hops(stream.publisher, stream.node)
    latency = case.routes.latency_s(stream.publisher, stream.node)
    nearest = [f"a deadline of {best:.6g} s (proxy on {case.name(place)})"]
    if hops and stream.deadline_s > latency:
        nearest.append(f"a message every {(stream.deadline_s - latency) / hops:.6g} s or more often")
    return Reason(
        "subscriber", name, best - stream.deadline_s, "s",
        f"subscriber {name!r} of tag {tag!r} gets nothing within {stream.deadline_s:.6g} s: its best place, on "
        f"{case.name(place)}, takes {best:.6g} s, {best - stream.deadline_s:.6g} s too long",
        tuple(nearest),
    )  # fmt: skip


def _overload(case: Case, kind: str, index: int, by: float, nearest: list[str]) -> Reason:
    if kind == "link":
        link = case.problem.links[index]
        name, capacity, unit = f"{link.a}-{link.b}", link.bandwidth, "bytes/s"
    else:
        node = case.problem.nodes[index]
        name, capacity, unit = node.name, node.cpu, "of a core"
    return Reason(
        kind, name, by, unit,
        f"{kind} {name} has {capacity:.6g} {unit} and would need at least {by:.6g} more",
        (f"{capacity + by:.6g} {unit} on {kind} {name}", *nearest),
    )  # fmt: skip


def _too_few_proxies(case: Case, everywhere: bool, limit_s: float) -> Reason:
    limit = case.problem.max_proxies_per_tag or 0
    most = max(len(demand.subscribers) for demand in case.problem.demands)
    enough = next(
        (n for n in range(limit + 1, most + 1) if _fits(case.problem, everywhere, limit_s, max_proxies_per_tag=n)), None
    )
    nearest = () if enough is None else (f"max_proxies_per_tag = {enough}",)
    return Reason(
        "proxies", "max_proxies_per_tag", None if enough is None else float(enough - limit), "proxies",
        f"with at most {limit} proxies per tag not every subscriber can be served in time", nearest,
    )  # fmt: skip


def _longer_deadlines(case: Case, everywhere: bool, limit_s: float) -> list[str]:
    """The least sum of lateness within all capacities."""
    if not any(math.isfinite(stream.deadline_s) for stream in case.streams):
        return []
    free = changed(case.problem, lambda _: {"deadline_s": math.inf})
    relaxed = Case(free)
    choices = _choices(relaxed, everywhere)
    lateness = {
        (i, node): max(0.0, delay.worst_case(case, stream, node).total_s - stream.deadline_s)
        for i, stream in enumerate(case.streams)
        for node in choices[i]
        if math.isfinite(stream.deadline_s)
    }
    program = OneHot(relaxed, choices)
    solution = program.late(lateness, limit_s)
    if solution is None:
        return []
    found = []
    for i, place in enumerate(program.chosen(solution)):
        stream = case.streams[i]
        needed = delay.worst_case(case, stream, place).total_s
        if not delay.in_time(needed, stream.deadline_s):
            found.append(
                f"a deadline of {needed:.6g} s instead of {stream.deadline_s:.6g} for subscriber "
                f"{stream.subscriber.name!r} of tag {stream.demand.tag!r}"
            )
    return [" and ".join(found)] if found else []


def _larger_factors(case: Case, everywhere: bool, limit_s: float) -> list[str]:
    """The smallest larger factor of one subscriber that fits, or else of all."""
    if not everywhere:
        return []
    factors = {(one.demand.tag, one.subscriber.name): one.wanted.every for one in case.streams}
    for times in FACTORS:
        for key in list(factors) if len(factors) <= _MOST_TRIED else []:
            if _fits(_slower(case.problem, factors, {key}, times), everywhere, limit_s):
                tag, name = key
                return [f"every = {factors[key] * times} for subscriber {name!r} of tag {tag!r}"]
    for times in FACTORS:
        if _fits(_slower(case.problem, factors, set(factors), times), everywhere, limit_s):
            return [f"{times} times the factor for every subscriber"]
    return []


def _slower(problem: Problem, factors: dict[tuple[str, str], int], whose: set[tuple[str, str]], times: int) -> Problem:
    return changed(problem, lambda key: {"every": factors[key] * times} if key in whose else {})


def _fits(problem: Problem, everywhere: bool, limit_s: float, **changes: object) -> bool:
    case = Case(dataclasses.replace(problem, **changes))  # type: ignore[arg-type]
    choices = _choices(case, everywhere)
    return all(choices) and OneHot(case, choices).solve(1.0, limit_s) is not None


def _program(case: Case, everywhere: bool) -> Program:
    if not everywhere and regions.suits(case.problem):
        rest, _, choices = detours.crowded(case, regions.nearest(case))
        return OneHot(rest, choices).program
    return OneHot(case, _choices(case, everywhere)).program


def _choices(case: Case, everywhere: bool) -> list[list[int]]:
    if everywhere:
        return [delay.candidates(case, stream, case.hosts) for stream in case.streams]
    return [delay.near_the_way(case, stream) for stream in case.streams]
