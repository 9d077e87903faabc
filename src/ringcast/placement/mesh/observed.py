"""A running mesh as a problem: what daemons measured becomes network, demands and costs. Pure: no daemon is asked here.

Daemons at a distance of one hop are joined by a link. Where only a longer way leads on, because the machines between
run no daemon, that way is a chain of hidden nodes, which forward and hold no proxy. Its links share half the round trip
as their latency; their bandwidth is that of the slower interface.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ringcast.placement.checks import check
from ringcast.placement.model import Costs, Demand, Link, Node, Objective, Problem, Subscriber

HIDDEN = "~"
_MOST_HEARTBEATS = 8
"""Before the next message; who sends once in a second or more seldom loads no link."""


@dataclass(frozen=True)
class Distance:
    """Between two daemons: hops (1: the same wire or network), round trip, and the rate of the slower interface."""

    a: str
    b: str
    hops: int
    round_trip_s: float
    bandwidth: float = math.inf


@dataclass(frozen=True)
class Framing:
    """What a message becomes on a wire: packets of at most `packet_bytes` of it, each with `header_bytes` more. Between
    messages a sender may say that it is there, in a packet without data: first after `heartbeat_s`, and each time
    after twice as long."""

    header_bytes: float
    packet_bytes: float
    heartbeat_s: float = math.inf

    def on_the_wire(self, size: float, period_s: float = 0.0) -> float:
        """Of a message and what is sent until the next."""
        packets = max(1, math.ceil(size / self.packet_bytes)) + self._heartbeats(period_s)
        return size + self.header_bytes * packets

    def _heartbeats(self, period_s: float) -> int:
        count, at, pause = 0, self.heartbeat_s, self.heartbeat_s
        while at < period_s and count < _MOST_HEARTBEATS:
            count, pause = count + 1, 2 * pause
            at += pause
        return count


def observed(
    nodes: Sequence[Node], distances: Sequence[Distance], demands: Sequence[Demand], framing: Framing,
    costs: Costs | None = None, objective: Objective | None = None,
) -> Problem:  # fmt: skip
    """What is, charged as sent; `demands` have sizes of messages, which become bytes on the wire.

    Raises PlacementError when the mesh is not in one piece or says something that cannot be.
    """
    hidden, links = _joined([node.name for node in nodes], distances)
    return check(
        Problem(
            (*nodes, *hidden), tuple(links), tuple(framed(demand, framing) for demand in demands),
            costs or Costs(), objective or Objective(), "sent",
        )
    )  # fmt: skip


def without(problem: Problem, gone: set[str]) -> Problem:
    """The same with no proxies on these nodes. They still forward: a daemon that died is not a machine that did."""
    nodes = tuple(Node(node.name, node.cpu, node.host and node.name not in gone) for node in problem.nodes)
    return Problem(
        nodes, problem.links, problem.demands, problem.costs, problem.objective, problem.charge,
        problem.max_proxies_per_tag,
    )  # fmt: skip


def _joined(names: list[str], distances: Sequence[Distance]) -> tuple[list[Node], list[Link]]:
    """Nearest first, so that a longer way is added only where the shorter ones do not explain it."""
    hops = {name: {name: 0} for name in names}
    hidden: list[Node] = []
    links: list[Link] = []
    for one in sorted(distances, key=lambda one: (one.hops, one.round_trip_s, one.a, one.b)):
        if one.a not in hops or one.b not in hops or hops[one.a].get(one.b, math.inf) <= one.hops:
            continue
        chain = [one.a, *(f"{one.a}{HIDDEN}{one.b}{HIDDEN}{i}" for i in range(1, one.hops)), one.b]
        hidden += [Node(name, host=False) for name in chain[1:-1]]
        latency = one.round_trip_s / 2 / one.hops
        links += [Link(x, y, one.bandwidth, latency) for x, y in itertools.pairwise(chain)]
        for x in names:
            for y in names:
                for near, far in ((one.a, one.b), (one.b, one.a)):
                    if near in hops[x] and far in hops[y]:
                        way = hops[x][near] + one.hops + hops[y][far]
                        if way < hops[x].get(y, math.inf):
                            hops[x][y] = hops[y][x] = way
    return hidden, links


def framed(demand: Demand, framing: Framing) -> Demand:
    """With bytes on the wire instead of sizes of messages."""

    def scaled(one: Subscriber) -> float | None:
        if one.every == 1 and one.scaled_bytes is None:
            return None  # the whole stream, which a proxy gets as well
        size = demand.bytes if one.scaled_bytes is None else one.scaled_bytes
        return framing.on_the_wire(size, demand.period_s * one.every)

    subscribers = tuple(replace(one, scaled_bytes=scaled(one)) for one in demand.subscribers)
    return replace(demand, bytes=framing.on_the_wire(demand.bytes, demand.period_s), subscribers=subscribers)
