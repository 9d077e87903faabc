"""A running mesh as a problem: what daemons reported becomes network and demands. Pure: no daemon is asked here.

A tag's publishers on one node are one demand: their rates add up. Where they are on several nodes, those on the
busiest node decide, because `at` is one word for all that a subscriber gets of a tag. Subscribers on that very node
load nothing and are left out. Whoever wants every message as it is has no proxy to be placed; it is there as load.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from ringcast.control.placing import Observation, Report, SubscriberPlace, TagRate
from ringcast.model.place import PUBLISHER, SUBSCRIBER, node_of, subscriber_key
from ringcast.placement.case import Case
from ringcast.placement.checks import check
from ringcast.placement.mesh.observed import Distance, Framing, framed, observed
from ringcast.placement.model import Costs, Demand, Node, PlacementError, Problem, Subscriber
from ringcast.scaling.temporal import factor

FRAMING = Framing(header_bytes=90, packet_bytes=1424, heartbeat_s=0.005)
"""Of the default transport on an Ethernet of 1500 bytes: 48 bytes of its own, 8 of UDP, 20 of IP, 14 of Ethernet."""
COSTS = Costs(in_s=1e-5, out_s=1e-5, scale_s=1e-5)
"""Seconds of CPU per message, where nobody declares others. They only count where a node declares a share."""
_PIXEL_BYTES = 3
"""Of a scaled message of which none was seen yet, per point, and never more than the whole."""


@dataclass(frozen=True)
class Live:
    """`places` are the nodes that hold the proxies now, by stream; None where the node is gone or nobody has decided.
    `free` are the streams whose place is to be chosen."""

    case: Case
    who: tuple[SubscriberPlace, ...]
    places: tuple[int | None, ...]
    free: tuple[bool, ...]

    @property
    def undecided(self) -> list[int]:
        """Streams that need a place now."""
        return [index for index, free in enumerate(self.free) if free and self.places[index] is None]

    @property
    def current(self) -> tuple[int | None, ...]:
        """As they are, those that nobody has a say in included."""
        return tuple(
            stream.publisher if place is None and not free else place
            for stream, place, free in zip(self.case.streams, self.places, self.free, strict=True)
        )

    def at_publishers(self) -> Live:
        """With those that have no place where they are until they get one: held at their publishers."""
        if not (waiting := set(self.undecided)):
            return self
        places = tuple(self.case.streams[i].publisher if i in waiting else place for i, place in enumerate(self.places))
        free = tuple(chosen and i not in waiting for i, chosen in enumerate(self.free))
        held = replace(self, places=places, free=free)
        return replace(held, case=_pinned(held, lambda index: not free[index]))

    def pinned(self, at: Callable[[int], bool]) -> Case:
        """The same case with the proxies of those streams kept where they are."""
        return _pinned(self, at)


def live(
    found: Observation, free: Callable[[SubscriberPlace], bool], *, undecided: Callable[[SubscriberPlace], bool],
    network: Problem | None = None,
) -> Live:  # fmt: skip
    """`free` says whose place is to be chosen; the others' proxies stay where they are. `undecided` says who has none
    yet. `network` declares nodes, links, costs and the cost instead of what was measured.

    Raises PlacementError when the mesh is not in one piece, or something was said that cannot be.
    """
    rates = _busiest(found)
    who: list[SubscriberPlace] = []
    demands: list[Demand] = []
    by_tag: dict[str, list[SubscriberPlace]] = defaultdict(list)
    for one in found.subscribers:
        by_tag[one.tag].append(one)
    for tag, (publisher, rate) in sorted(rates.items()):
        remote = [one for one in by_tag[tag] if one.node != publisher and one.node in found.nodes]
        if not remote:
            continue
        who += remote
        demands.append(
            Demand(tag, publisher, 1 / rate.hz, rate.bytes, tuple(_subscriber(found, one, rate) for one in remote))
        )
    if network is not None:
        problem = _declared(found, network, demands)
    else:
        problem = observed(
            [Node(name, _share(found, name)) for name in sorted(found.nodes)],
            _distances(found),
            demands,
            FRAMING,
            COSTS,
        )
    made = Case(problem)
    now = tuple(_place(made, one, undecided(one)) for one in who)
    chosen = tuple(one.wanted.scales and free(one) for one in who)
    unpinned = Live(made, tuple(who), now, chosen)
    case = _pinned(unpinned, lambda index: not chosen[index])
    return replace(unpinned, case=case)


def key_of(one: SubscriberPlace) -> str:
    return subscriber_key(one.node, one.id)


def _busiest(found: Observation) -> dict[str, tuple[str, TagRate]]:
    """Of each tag, the node whose publishers send most bytes."""
    best: dict[str, tuple[str, TagRate]] = {}
    for report in found.reports:
        for rate in report.rates:
            if rate.hz <= 0 or rate.bytes <= 0 or report.node not in found.nodes:
                continue
            known = best.get(rate.tag)
            if known is None or rate.hz * rate.bytes > known[1].hz * known[1].bytes:
                best[rate.tag] = (report.node, rate)
    return best


def _subscriber(found: Observation, one: SubscriberPlace, rate: TagRate) -> Subscriber:
    wanted = one.wanted
    every = factor(wanted.rate_hz, rate.hz) if wanted.rate_hz else wanted.every
    size = None if wanted.size is None else _scaled(found, one, rate)
    return Subscriber(key_of(one), one.node, every, size)


def _scaled(found: Observation, one: SubscriberPlace, rate: TagRate) -> float:
    seen = [
        known.bytes
        for report in found.reports
        for known in report.sizes
        if known.tag == one.tag and known.size == one.wanted.size and known.bytes > 0
    ]
    assert one.wanted.size is not None
    width, height = one.wanted.size
    return seen[0] if seen else min(rate.bytes, float(width * height * _PIXEL_BYTES))


def _distances(found: Observation) -> list[Distance]:
    """One of each pair: what either of the two reported last, the shorter round trip and the slower interface."""
    pairs: dict[tuple[str, str], list[Distance]] = defaultdict(list)
    for report in found.reports:
        for way in report.ways:
            if way.node in found.nodes and way.node != report.node:
                a, b = sorted((report.node, way.node))
                bandwidth = way.bandwidth or math.inf
                pairs[a, b].append(Distance(a, b, way.hops, way.round_trip_s, bandwidth))
    return [
        Distance(
            a, b, min(one.hops for one in seen), min(one.round_trip_s for one in seen),
            min(one.bandwidth for one in seen),
        )
        for (a, b), seen in pairs.items()
    ]  # fmt: skip


def _share(found: Observation, name: str) -> float:
    report: Report | None = next((one for one in found.reports if one.node == name), None)
    return math.inf if report is None or report.cpu_share is None else report.cpu_share


def _declared(found: Observation, network: Problem, demands: list[Demand]) -> Problem:
    """Nodes of the file that run no daemon forward and hold no proxy; daemons' own shares count where it has none."""
    nodes = tuple(
        Node(node.name, min(node.cpu, _share(found, node.name)), node.name in found.nodes) for node in network.nodes
    )
    known = {node.name for node in nodes}
    if missing := sorted(set(found.nodes) - known):
        raise PlacementError("nodes", f"the file has no node {missing[0]!r}, and a daemon of that name runs; add it")
    sent = tuple(framed(demand, FRAMING) for demand in demands)
    return check(replace(network, nodes=nodes, demands=sent, charge="sent"))


def _place(case: Case, one: SubscriberPlace, undecided: bool) -> int | None:
    if undecided:
        return None
    number = case.routes.number
    demand = next(demand for demand in case.problem.demands if demand.tag == one.tag)
    if one.at == SUBSCRIBER:
        return number[one.node]
    if one.at == PUBLISHER or not node_of(one.at):
        return number[demand.publisher]
    named = number.get(node_of(one.at))
    return named if named in case.hosts else None


def _pinned(made: Live, at: Callable[[int], bool]) -> Case:
    index = 0
    demands = []
    for demand in made.case.problem.demands:
        subscribers = []
        for one in demand.subscribers:
            place = made.places[index]
            # Whose node is gone has its proxy at the publisher: that is how streams go on.
            held = demand.publisher if place is None else made.case.name(place)
            subscribers.append(replace(one, proxy=held if at(index) else None))
            index += 1
        demands.append(replace(demand, subscribers=tuple(subscribers)))
    return Case(replace(made.case.problem, demands=tuple(demands)), made.case.routes)
