"""The networks of paper 001: the star of Appendix A and the path through the vBNS. Pure.

What the paper does not print is ours: T = 0.1 s, T' = 3 T and 100 bytes on the star; on the vBNS T' = 4 T, 1000 bytes,
and where more than one subscriber sits.
"""

from __future__ import annotations

import math
from typing import Any

from ringcast.placement.model import Demand, Link, Node, Problem, Subscriber

T, N, BYTES = 0.1, 3, 100
F, SCALED = BYTES / T, BYTES / (T * N)


def star(deadline_s: float = math.inf, **changes: Any) -> Problem:
    """Figure 12: hub 5, publisher on 1, subscribers on 4 and 3."""
    subscribers = (Subscriber("1", "4", N, deadline_s=deadline_s), Subscriber("2", "3", N, deadline_s=deadline_s))
    values: dict[str, Any] = {
        "nodes": tuple(Node(str(i)) for i in range(1, 6)),
        "links": tuple(Link(str(i), "5") for i in range(1, 5)),
        "demands": (Demand("star", "1", T, BYTES, subscribers),),
    }
    return Problem(**(values | changes))


def chain(nodes: int, *subscribers: Subscriber, **changes: Any) -> Problem:
    """n0 publishes; n0 - n1 - n2 and so on in a line."""
    values: dict[str, Any] = {
        "nodes": tuple(Node(f"n{i}") for i in range(nodes)),
        "links": tuple(Link(f"n{i}", f"n{i + 1}") for i in range(nodes - 1)),
        "demands": (Demand("chain", "n0", T, BYTES, subscribers),),
    }
    return Problem(**(values | changes))


def vbns(subscribers: int, *, every: int = 4, hops_in_time: float = 12.0) -> Problem:
    """Figure 1 from CMU to San Diego: a chain of seven nodes. The first subscriber is in San Diego, the others go back
    towards CMU and begin again. Each must have its data within `hops_in_time` periods, which CMU does not meet for the
    far ones, and link f, into San Diego, carries less than the full stream, so that no proxy fits there."""
    ends = [6 - i % 6 for i in range(subscribers)]
    capacity = 0.9 * 1000 / T * ends.count(6)
    links = tuple(Link(f"n{i}", f"n{i + 1}", capacity if i == 5 else math.inf) for i in range(6))
    wanted = tuple(Subscriber(f"s{i}", f"n{end}", every, deadline_s=hops_in_time * T) for i, end in enumerate(ends))
    return chain(7, links=links, demands=(Demand("vbns", "n0", T, 1000, wanted),))
