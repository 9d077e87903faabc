"""Why a proxy sits where it sits: what every other place would have meant. Pure.

Each place is tried for one subscriber while all others stay where the plan has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.model.place import PUBLISHER, SUBSCRIBER
from ringcast.placement import charges, delay
from ringcast.placement.case import Case, Stream
from ringcast.placement.plan import Plan

_NODE = "node:"


@dataclass(frozen=True)
class Alternative:
    """`cost` is that of the whole plan. `wrong` is empty when the place would do."""

    node: str
    cost: float
    delay_s: float
    wrong: str


def alternatives(case: Case, plan: Plan, index: int) -> list[Alternative]:
    """Every node that may hold the proxy of stream `index`, the plan's own first, then what would do by cost."""
    stream = case.streams[index]
    found = []
    for node in case.hosts:
        places = [*plan.places[:index], node, *plan.places[index + 1 :]]
        loads = charges.loads(case, places)
        late = delay.worst_case(case, stream, node).total_s
        found.append(
            Alternative(case.name(node), loads.cost(case.problem), late, _wrong(case, stream, late, loads, places))
        )
    own = case.name(plan.places[index])
    return sorted(found, key=lambda one: (one.node != own, bool(one.wrong), one.cost, one.delay_s, one.node))


def sentence(case: Case, plan: Plan, index: int) -> str:
    """One line for `--why`: the place, the next best, and what is wrong with cheaper ones."""
    stream = case.streams[index]
    own, *others = alternatives(case, plan, index)
    who = f"{stream.demand.tag}, {stream.subscriber.name}"
    parts = [f"{who}: on {own.node} ({own.cost:.6g} in all, {own.delay_s:.4g} s worst)"]
    if good := [one for one in others if not one.wrong]:
        parts.append(f"next best is {good[0].node} ({_more(good[0], own)})")
    else:
        parts.append("no other place would do")
    cheaper = sorted((one for one in others if one.wrong and one.cost < own.cost), key=lambda one: one.cost)
    parts += [f"{one.node} would be cheaper ({one.cost:.6g}) but {one.wrong}" for one in cheaper[:2]]
    return "; ".join(parts)


def settings(case: Case, plan: Plan) -> list[tuple[str, str, str]]:
    """The plan as (tag, subscriber, at), with the words that `at` has."""
    return [
        (stream.demand.tag, stream.subscriber.name, word(case, stream, place))
        for stream, place in zip(case.streams, plan.places, strict=True)
    ]


def word(case: Case, stream: Stream, place: int) -> str:
    """The place as `at` has it."""
    if place == stream.publisher:
        return PUBLISHER
    return SUBSCRIBER if place == stream.node else _NODE + case.name(place)


def _more(one: Alternative, own: Alternative) -> str:
    if one.cost <= own.cost * (1 + 1e-9):
        return "the same cost"
    return f"{one.cost / own.cost - 1:.1%} more" if own.cost else f"{one.cost:.6g}"


def _wrong(case: Case, stream: Stream, late: float, loads: charges.Loads, places: list[int]) -> str:
    if not delay.in_time(late, stream.deadline_s):
        return f"takes {late:.4g} s, and {stream.deadline_s:.4g} s are allowed"
    problem = case.problem
    for link, load in zip(problem.links, loads.links, strict=True):
        if not charges.within(load, link.bandwidth):
            return f"link {link.a}-{link.b} would carry {load:.6g} bytes/s of {link.bandwidth:.6g}"
    for node, load in zip(problem.nodes, loads.nodes, strict=True):
        if not charges.within(load, node.cpu):
            return f"node {node.name} would spend {load:.4g} of a core, and {node.cpu:.4g} is allowed"
    return "" if charges.within_proxies(case, places) else "the tag would have proxies on too many nodes"
