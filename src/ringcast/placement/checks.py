"""Whether a problem makes sense: names that exist once, numbers that can be, a network in one piece. Pure.

Every complaint is one sentence that names the field, so that who wrote the file finds it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable

from ringcast.placement.model import CHARGES, Demand, PlacementError, Problem


def check(problem: Problem) -> Problem:
    """Return it when it can be planned. Raises PlacementError."""
    if not problem.nodes:
        raise PlacementError("nodes", "there is no node; a network has at least one")
    names = _once("nodes[{}].name", [node.name for node in problem.nodes], "node")
    for i, node in enumerate(problem.nodes):
        _capacity(f"nodes[{i}].cpu", node.cpu, "a share of a core, as 0.5")
    _links(problem, names)
    _once("demands[{}].tag", [demand.tag for demand in problem.demands], "tag")
    for i, demand in enumerate(problem.demands):
        _demand(f"demands[{i}]", demand, names)
    _figures(problem)
    _in_one_piece(problem)
    return problem


def _links(problem: Problem, names: set[str]) -> None:
    seen: dict[frozenset[str], int] = {}
    for i, link in enumerate(problem.links):
        for end in ("a", "b"):
            _known(f"links[{i}].{end}", getattr(link, end), names)
        if link.a == link.b:
            raise PlacementError(f"links[{i}]", f"joins {link.a!r} to itself; a link joins two nodes")
        pair = frozenset((link.a, link.b))
        if pair in seen:
            raise PlacementError(
                f"links[{i}]",
                f"{link.a!r} and {link.b!r} are joined already by links[{seen[pair]}]; write one link with the "
                "bandwidth of both",
            )
        seen[pair] = i
        _capacity(f"links[{i}].bandwidth", link.bandwidth, "bytes per second")
        if not 0 <= link.latency_s < math.inf:
            raise PlacementError(f"links[{i}].latency_s", f"is {link.latency_s:g}; a latency is 0 s or more")


def _demand(where: str, demand: Demand, names: set[str]) -> None:
    _known(f"{where}.publisher", demand.publisher, names)
    _positive(f"{where}.period_s", demand.period_s, "seconds between two messages")
    _positive(f"{where}.bytes", demand.bytes, "the size of a message")
    _once(where + ".subscribers[{}].name", [one.name for one in demand.subscribers], "subscriber")
    for i, one in enumerate(demand.subscribers):
        here = f"{where}.subscribers[{i}]"
        _known(f"{here}.node", one.node, names)
        if one.proxy is not None:
            _known(f"{here}.proxy", one.proxy, names)
        if one.every < 1:
            raise PlacementError(f"{here}.every", f"is {one.every}; every n-th message means an integer n from 1 on")
        if one.scaled_bytes is not None:
            _positive(f"{here}.scaled_bytes", one.scaled_bytes, "the size of a scaled message")
        if not one.deadline_s > 0:
            raise PlacementError(f"{here}.deadline_s", f"is {one.deadline_s:g}; a deadline is above 0 s, or left out")


def _figures(problem: Problem) -> None:
    for name in ("in_s", "out_s", "scale_s"):
        if not 0 <= (value := getattr(problem.costs, name)) < math.inf:
            raise PlacementError(f"costs.{name}", f"is {value:g}; it is 0 or more seconds of CPU per message")
    for name in ("bandwidth", "cpu"):
        if not 0 <= (value := getattr(problem.objective, name)) < math.inf:
            raise PlacementError(f"cost.{name}", f"is {value:g}; a weight is 0 or more")
    if problem.objective.bandwidth == 0 and problem.objective.cpu == 0:
        raise PlacementError("cost", "weighs nothing; give bandwidth or cpu a weight above 0")
    if problem.charge not in CHARGES:
        raise PlacementError("charge", f"is {problem.charge!r}; it is one of {', '.join(CHARGES)}")
    if problem.max_proxies_per_tag is not None and problem.max_proxies_per_tag < 1:
        raise PlacementError("max_proxies_per_tag", f"is {problem.max_proxies_per_tag}; it is 1 or more, or left out")


def _in_one_piece(problem: Problem) -> None:
    beside: dict[str, list[str]] = {node.name: [] for node in problem.nodes}
    for link in problem.links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    first = problem.nodes[0].name
    reached, waiting = {first}, [first]
    while waiting:
        for other in beside[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    apart = [node.name for node in problem.nodes if node.name not in reached]
    if apart:
        raise PlacementError("links", f"no way leads from {first!r} to {_listed(apart)}; the network must be connected")


def _once(where: str, names: list[str], what: str) -> set[str]:
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name:
            raise PlacementError(where.format(i), f"is empty; a {what} needs a name")
        if name in seen:
            raise PlacementError(
                where.format(i), f"{name!r} is there twice, first as {where.format(seen[name])}; names differ"
            )
        seen[name] = i
    return set(seen)


def _known(where: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        close = difflib.get_close_matches(name, list(names), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "add it to nodes"
        raise PlacementError(where, f"there is no node {name!r}; {hint}")


def _capacity(where: str, value: float, what: str) -> None:
    if not value >= 0:
        raise PlacementError(where, f"is {value:g}; it is {what}, 0 or more, and left out it is unlimited")


def _positive(where: str, value: float, what: str) -> None:
    if not 0 < value < math.inf:
        raise PlacementError(where, f"is {value:g}; {what} is above 0")


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
