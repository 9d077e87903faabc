"""What is asked: a network, who sends what to whom, what work costs, and how data is charged. Pure values.

Rates are messages or bytes per second, CPU is seconds of one core per second. Infinity means "no limit". A `Problem` is
only what somebody wrote down: `checks.check` says whether it makes sense.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ringcast.errors import RingcastError

Charge = Literal["unicast", "multicast", "sent"]
CHARGES: tuple[str, ...] = get_args(Charge)
BANDWIDTH, CPU = "bandwidth", "cpu"


class PlacementError(RingcastError, ValueError):
    """A network or a demand that cannot be planned. `field` is where in the file, as `links[3].bandwidth`."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}" if field else reason)


@dataclass(frozen=True)
class Node:
    """`cpu` is the share of a core that streams may take on it: 0.5 is half a core, 4 is four cores. Without `host` it
    forwards and can hold no proxy; files do not say so, a running mesh does."""

    name: str
    cpu: float = math.inf
    host: bool = True


@dataclass(frozen=True)
class Link:
    """Joins two nodes. `bandwidth` is bytes per second, both directions together."""

    a: str
    b: str
    bandwidth: float = math.inf
    latency_s: float = 0.0


@dataclass(frozen=True)
class Subscriber:
    """Wants every n-th message, each of `scaled_bytes` (None: as large as published), at most `deadline_s` late. With
    `proxy` its proxy is on that node and nothing is left to choose; files do not say so, a running mesh does."""

    name: str
    node: str
    every: int = 1
    scaled_bytes: float | None = None
    deadline_s: float = math.inf
    proxy: str | None = None


@dataclass(frozen=True)
class Demand:
    """A publisher that sends `bytes` every `period_s` on a tag, and who subscribes to it."""

    tag: str
    publisher: str
    period_s: float
    bytes: float
    subscribers: tuple[Subscriber, ...]


@dataclass(frozen=True)
class Costs:
    """Seconds of CPU: to receive a message, to send one, and to make a scaled one."""

    in_s: float = 0.0
    out_s: float = 0.0
    scale_s: float = 0.0


@dataclass(frozen=True)
class Objective:
    """What is minimised: `bandwidth` times bytes per second on all links, plus `cpu` times CPU of all nodes."""

    bandwidth: float = 1.0
    cpu: float = 0.0

    def of(self, link_loads: list[float], node_loads: list[float]) -> float:
        return self.bandwidth * math.fsum(link_loads) + self.cpu * math.fsum(node_loads)


@dataclass(frozen=True)
class Problem:
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    demands: tuple[Demand, ...]
    costs: Costs = field(default_factory=Costs)
    objective: Objective = field(default_factory=Objective)
    charge: Charge = "unicast"
    max_proxies_per_tag: int | None = None


def changed(problem: Problem, change: Callable[[tuple[str, str]], dict[str, Any]]) -> Problem:
    """The problem with other fields of its subscribers: `change` gives them by tag and name."""
    return replace(
        problem,
        demands=tuple(
            replace(
                demand,
                subscribers=tuple(replace(one, **change((demand.tag, one.name))) for one in demand.subscribers),
            )
            for demand in problem.demands
        ),
    )
