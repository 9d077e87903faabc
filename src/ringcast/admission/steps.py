"""Declared streams as steps, each begun when the one before it ends: work on a node, a link, a wait for repairs. Pure.

A stream is a tree of steps: the publisher's work, then for every node that gets a copy its way there and its work, and
at the end each subscriber's. Equal wishes of one node share one copy, as the mesh does it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

from ringcast.admission import recovery
from ringcast.admission.model import AdmissionError, Link, Pull, Stream, Subscriber, System, ns
from ringcast.admission.priorities import OWN_THREAD, Rank, class_of_rank, rank, rung_rank, shared
from ringcast.placement import model as placed
from ringcast.placement.routes import Routes

Kind = Literal["work", "link", "wait"]
REQUEST_BYTES = 64
"""Of what a pull client sends to ask."""
DELIVERY = "delivery"
"""The thread of a node that receives for all channels without one of their own."""


@dataclass(frozen=True)
class Step:
    """`what` and `where` are for people. Of work: `node`, `compute_ns` and `thread` ('' is one of its own). Of a link:
    its number, its `direction`, `wire_bytes`, `losses`, and how often a message is sent again on average. Of a wait:
    the steps whose losses are repaired."""

    number: int
    before: int
    kind: Kind
    what: str
    where: str
    rank: Rank
    period_ns: int
    node: int = -1
    compute_ns: int = 0
    thread: str = ""
    link: int = -1
    direction: int = 0
    wire_bytes: int = 0
    losses: int = 0
    repeats: float = 0.0
    transport: str = ""
    path: tuple[int, ...] = ()


@dataclass(frozen=True)
class End:
    """Where somebody has what was asked for: after step `last`. `reply` are the steps of a pull's answer, which begin
    anew."""

    kind: Literal["subscriber", "pull", "task"]
    tag: str
    name: str
    node: str
    rank: Rank
    last: int
    period_ns: int
    limit_s: float | None
    reply: int = -1


@dataclass(frozen=True)
class Plan:
    """`links` are the system's, and after them the cards of nodes."""

    steps: tuple[Step, ...]
    ends: tuple[End, ...]
    links: tuple[Link, ...]
    jitter_ns: dict[int, int]
    """Of first steps: how much later than their period they may begin."""

    def way(self, last: int) -> list[Step]:
        """From the first step to this one."""
        found: list[Step] = []
        while last >= 0:
            found.append(self.steps[last])
            last = self.steps[last].before
        return found[::-1]


def plan(system: System) -> Plan:
    """Raises AdmissionError."""
    return _Planner(system).plan()


class _Planner:
    def __init__(self, system: System) -> None:
        self._system = system
        self._number = {node.name: i for i, node in enumerate(system.nodes)}
        self._routes = Routes(
            tuple(placed.Node(node.name) for node in system.nodes),
            tuple(placed.Link(link.a, link.b, latency_s=link.latency_s) for link in system.links),
        )
        self._costs = [system.costs_of(node) for node in system.nodes] if system.streams else []
        self._links, self._cards = _with_cards(system)
        self._rank = rung_rank if system.rungs else rank
        self._steps: list[Step] = []
        self._ends: list[End] = []
        self._jitter: dict[int, int] = {}

    def plan(self) -> Plan:
        for i, stream in enumerate(self._system.streams):
            self._stream(f"streams[{i}]", stream)
        for task in self._system.tasks:
            order = self._rank(task.deadline_s or float("inf"), f"task {task.name}", task.priority)
            last = self._work("compute", task.node, order, ns(task.period_s), ns(task.compute_s), -1)
            self._ends.append(
                End("task", "", task.name, task.node, order, last, ns(task.period_s), task.deadline_s)
            )  # fmt: skip
        return Plan(tuple(self._steps), tuple(self._ends), self._links, self._jitter)

    # ---------------------------------------------------------------- a stream

    def _stream(self, where: str, stream: Stream) -> None:
        order = self._rank(stream.deadline_s, stream.tag, stream.priority)
        period = ns(stream.period_s)
        costs = self._costs[self._number[stream.node]]
        legs = self._legs(stream)
        work = ns(stream.compute_s) + costs.publish.ns(stream.bytes)
        for size in sorted({leg.size for leg in legs if leg.scaled_here}):
            work += costs.scale.ns(stream.bytes) + costs.publish.ns(size)
        inline = [leg for leg in legs if leg.node != stream.node and not recovery.is_pumped(leg.transport, leg.size)]
        work += sum(costs.send.ns(leg.size) for leg in inline)
        first = self._work("publish", stream.node, order, period, work, -1)
        self._jitter[first] = ns(stream.jitter_s)
        for leg in legs:
            arrived = self._leg(f"{where}.node", stream, leg, order, first, period * leg.every)
            for one in leg.subscribers:
                self._subscriber(stream, one, order, arrived, leg)
            for onward in leg.onward:
                self._onward(where, stream, onward, order, arrived, leg)
        for j, pull in enumerate(stream.pulls):
            self._pull(f"{where}.pulls[{j}]", stream, pull, first, legs)

    def _legs(self, stream: Stream) -> list[_Leg]:
        """What leaves the publisher: one leg for every node and content, its own node included."""
        legs: dict[tuple[str, int, float, bool, str], _Leg] = {}

        def leg(
            node: str, by: str, every: int = 1, size: float = stream.bytes, scaled_here: bool = False
        ) -> _Leg:  # fmt: skip
            key = (node, every, size, scaled_here, by if node != stream.node else "")
            return legs.setdefault(key, _Leg(node, every, size, scaled_here, by, [], {}))

        for one in stream.subscribers:
            by = one.transport or stream.transport
            place = _place(one.at, stream.node, one.node) if one.scales else stream.node
            size = stream.bytes if one.scaled_bytes is None else one.scaled_bytes
            if place == stream.node:
                leg(one.node, by, one.every, size, one.scaled_bytes is not None).subscribers.append(one)
            elif place == one.node:
                leg(one.node, by).subscribers.append(one)
            else:
                leg(place, by).onward.setdefault((one.node, one.every, size), []).append(one)
        for pull in stream.pulls:
            leg(_place(pull.at, stream.node, pull.node), stream.transport)
        return list(legs.values())

    def _leg(self, where: str, stream: Stream, leg: _Leg, order: Rank, before: int, period: int) -> int:
        """A copy to a node, and into the ring there; the number of its last step."""
        return self._copy(where, leg.transport, stream.node, leg.node, leg.size, order, before, period)

    def _copy(
        self, where: str, transport: str, source: str, to: str, size: float, order: Rank, before: int, period: int
    ) -> int:  # fmt: skip
        if source == to:
            return before
        if recovery.is_pumped(transport, size):
            cost = self._costs[self._number[source]].send.ns(size)
            before = self._work("send", source, order, period, cost, before)
        before = self._network(where, source, to, size, order, before, period, transport)
        has_own = class_of_rank(order) in OWN_THREAD
        cost = self._costs[self._number[to]].receive.ns(size)
        return self._work(
            "receive", to, order if has_own else shared("normal"), period, cost, before, "" if has_own else DELIVERY
        )

    def _onward(
        self, where: str, stream: Stream, onward: tuple[str, int, float], order: Rank, before: int, leg: _Leg
    ) -> None:
        """From a proxy on a node in between to a subscriber's node."""
        node, every, size = onward
        costs = self._costs[self._number[leg.node]]
        work = 0 if size == stream.bytes else costs.scale.ns(stream.bytes) + costs.publish.ns(size)
        if node != leg.node and not recovery.is_pumped(leg.transport, size):
            work += costs.send.ns(size)
        before = self._work("proxy", leg.node, order, ns(stream.period_s), work, before)
        period = ns(stream.period_s) * every
        arrived = self._copy(f"{where}.node", leg.transport, leg.node, node, size, order, before, period)
        for one in leg.onward[onward]:
            self._subscriber(stream, one, order, arrived, leg, size)

    def _subscriber(
        self, stream: Stream, one: Subscriber, order: Rank, before: int, leg: _Leg, size: float | None = None
    ) -> None:
        """`size` is what came; a proxy at the subscriber makes it smaller in the subscriber's own thread."""
        costs = self._costs[self._number[one.node]]
        came = leg.size if size is None else size
        work = costs.deliver.ns(came) + ns(one.compute_s)
        if one.scaled_bytes is not None and came == stream.bytes and not leg.scaled_here and size is None:
            work += costs.scale.ns(stream.bytes)
        period = ns(stream.period_s) * one.every
        last = self._work("deliver", one.node, order, period, work, before)
        self._ends.append(End("subscriber", stream.tag, one.name, one.node, order, last, period, one.deadline_s))

    def _pull(self, where: str, stream: Stream, pull: Pull, first: int, legs: list[_Leg]) -> None:
        """What a client gets has been in the buffer for at most a period, and then takes its way to the client."""
        order = self._rank(pull.max_age_s or float("inf"), f"{stream.tag} {pull.name}", stream.priority)
        holder = _place(pull.at, stream.node, pull.node)
        buffered = next(
            (step.number for step in self._steps if step.what == "receive" and self._is_of(step, first)
             and self._system.nodes[step.node].name == holder),
            first,
        )  # fmt: skip
        period = ns(pull.period_s)
        costs = self._costs[self._number[pull.node]]
        if holder == pull.node:
            reply = self._work("pull", pull.node, order, period, costs.pull.ns(stream.bytes), -1)
        else:
            asked = self._work("ask", pull.node, order, period, costs.send.ns(REQUEST_BYTES), -1)
            there = self._network(where, pull.node, holder, REQUEST_BYTES, order, asked, period, "tcp")
            answering = self._costs[self._number[holder]]
            work = answering.receive.ns(REQUEST_BYTES) + answering.pull.ns(stream.bytes)
            work += answering.send.ns(stream.bytes)
            answered = self._work("pull", holder, order, period, work, there)
            back = self._network(where, holder, pull.node, stream.bytes, order, answered, period, "tcp")
            taking = costs.receive.ns(stream.bytes) + costs.deliver.ns(stream.bytes)
            reply = self._work("deliver", pull.node, order, period, taking, back)
        self._ends.append(
            End(
                "pull", stream.tag, pull.name, pull.node, order, buffered, ns(stream.period_s), pull.max_age_s, reply
            )
        )  # fmt: skip

    # ---------------------------------------------------------------- single steps

    def _work(
        self, what: str, node: str, order: Rank, period: int, compute: int, before: int, thread: str = ""
    ) -> int:  # fmt: skip
        return self._add(
            kind="work", what=what, where=node, rank=order, period_ns=period, before=before,
            node=self._number[node], compute_ns=compute, thread=thread,
        )  # fmt: skip

    def _network(
        self, where: str, source: str, to: str, size: float, order: Rank, before: int, period: int, transport: str
    ) -> int:
        a, b = self._number[source], self._number[to]
        if self._routes.tree(a)[b] == (-1, -1):
            raise AdmissionError(where, f"no way leads from {source!r} to {to!r}; add a link")
        passed = self._routes.nodes(a, b)
        passing = [self._system.links[e] for e in self._routes.links(a, b)]
        losses = sum(link.losses for link in passing)
        repaired = 0 if transport == "udp" else losses
        repeats = 0.0 if transport == "udp" else math.fsum(link.losses * link.lost_share for link in passing)
        path: list[int] = []
        for directed, (here, there) in zip(self._routes.directed(a, b), itertools.pairwise(passed), strict=True):
            link = self._system.links[directed // 2]
            names = f"{self._system.nodes[here].name} to {self._system.nodes[there].name}"
            # Out of the card here, over the link, into the card there.
            passes = [(self._cards.get(here), 0), (directed // 2, directed % 2), (self._cards.get(there), 1)]
            for number, direction in passes:
                if number is not None:
                    card = number >= len(self._system.links)
                    before = self._add(
                        kind="link", what="link", where=self._links[number].b if card else names, rank=order,
                        period_ns=period, before=before, link=number, direction=direction,
                        wire_bytes=link.wire_bytes(size), losses=repaired, repeats=repeats,
                    )  # fmt: skip
                    path.append(before)
        if not repaired:
            return before
        return self._add(
            kind="wait", what="recovery", where=f"{source} to {to}", rank=order, period_ns=period, before=before,
            losses=losses, transport=transport, path=tuple(path),
        )  # fmt: skip

    def _add(self, **fields: object) -> int:
        number = len(self._steps)
        self._steps.append(Step(number=number, **fields))  # type: ignore[arg-type]
        return number

    def _is_of(self, step: Step, first: int) -> bool:
        while step.before >= 0:
            step = self._steps[step.before]
        return step.number == first


@dataclass
class _Leg:
    """A copy of a stream to a node; `onward` are copies that a proxy there sends on, by node, factor and size."""

    node: str
    every: int
    size: float
    scaled_here: bool
    transport: str
    subscribers: list[Subscriber]
    onward: dict[tuple[str, int, float], list[Subscriber]]


def _with_cards(system: System) -> tuple[tuple[Link, ...], dict[int, int]]:
    """The links, with the cards of nodes after them; and by node the number of its card."""
    links, cards = list(system.links), {}
    for i, node in enumerate(system.nodes):
        own = [link for link in system.links if node.name in (link.a, link.b)]
        if node.card and own:
            cards[i] = len(links)
            mtu, strict = max(link.mtu for link in own), all(link.priorities for link in own)
            name = f"card of {node.name}"
            links.append(Link(a=node.name, b=name, bandwidth=node.card, mtu=mtu, priorities=strict))
    return tuple(links), cards


def _place(at: str, publisher: str, subscriber: str) -> str:
    """The node that `at` means."""
    if at in ("publisher", "subscriber"):
        return publisher if at == "publisher" else subscriber
    return at.removeprefix("node:")
