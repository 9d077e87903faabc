"""A problem made ready to be computed with: nodes by number, one `Stream` for each subscriber, the routes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ringcast.placement.model import Demand, Problem, Subscriber
from ringcast.placement.routes import Routes


class Content(NamedTuple):
    """What travels: the messages of a tag, every n-th of them, of a size. Equal contents can share a way."""

    tag: int
    every: int
    bytes: float


@dataclass(frozen=True)
class Stream:
    """What one subscriber gets. Its proxy turns `full` into `wanted`; when they are equal it passes everything on."""

    tag: int
    publisher: int
    node: int
    period_s: float
    full: Content
    wanted: Content
    deadline_s: float
    demand: Demand
    subscriber: Subscriber

    def hz(self, content: Content) -> float:
        """Messages per second."""
        return 1.0 / (self.period_s * content.every)

    def rate(self, content: Content) -> float:
        """Bytes per second."""
        return content.bytes / (self.period_s * content.every)

    @property
    def scaled_period_s(self) -> float:
        return self.period_s * self.wanted.every


class Case:
    """Invariant: `problem` was checked."""

    def __init__(self, problem: Problem, routes: Routes | None = None) -> None:
        """`routes` are those of the same nodes and links, when they were made before."""
        self.problem = problem
        self.routes = routes or Routes(problem.nodes, problem.links)
        self.hosts = tuple(i for i, node in enumerate(problem.nodes) if node.host)
        """The nodes that can hold a proxy."""
        self.streams = [
            self._stream(tag, demand, one) for tag, demand in enumerate(problem.demands) for one in demand.subscribers
        ]

    def _stream(self, tag: int, demand: Demand, one: Subscriber) -> Stream:
        number = self.routes.number
        size = demand.bytes if one.scaled_bytes is None else one.scaled_bytes
        return Stream(
            tag, number[demand.publisher], number[one.node], demand.period_s, Content(tag, 1, demand.bytes),
            Content(tag, one.every, size), one.deadline_s, demand, one,
        )  # fmt: skip

    def name(self, node: int) -> str:
        return self.problem.nodes[node].name

    def path(self, stream: Stream, proxy: int) -> tuple[int, ...]:
        """Nodes from publisher to subscriber through the proxy, which need not be on the way."""
        routes = self.routes
        return routes.nodes(stream.publisher, proxy) + routes.nodes(proxy, stream.node)[1:]

    def on_the_way(self, stream: Stream) -> tuple[int, ...]:
        return self.routes.nodes(stream.publisher, stream.node)
