"""What is declared: nodes with cores and costs, links, streams with their subscribers and pull clients. Pure values.

Times are in seconds and sizes in bytes, as people write them; computing is done in whole nanoseconds. The same classes
are the schema of a file: a field that is not here is a mistake.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

import msgspec

from ringcast.errors import RingcastError
from ringcast.transport.addressing import HEADER_BYTES

Class = Literal["low", "normal", "high", "critical"]
CLASSES: tuple[Class, ...] = get_args(Class)
"""From the least important to the most."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
Some = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]

NS = 1_000_000_000
ETHERNET_BYTES = 38
"""Preamble, header, check sum and gap of a frame."""
IP_BYTES = 48
"""IPv6 and UDP; of IPv4 it is 28."""


class AdmissionError(RingcastError, ValueError):
    """A declaration that cannot be computed with. `field` is where, as `streams[2].period_s`."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}" if field else reason)


class Cost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Processor time of one stage: so much for each message, and so much for each of its bytes."""

    fixed_s: Some = 0.0
    per_byte_s: Some = 0.0

    def ns(self, size: float) -> int:
        return math.ceil((self.fixed_s + self.per_byte_s * size) * NS)


class Costs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node's stages take: into the ring; one copy to another node; out of the network into a ring; out of a ring
    to the program that waits; making a smaller one; answering a pull."""

    publish: Cost = Cost()
    send: Cost = Cost()
    receive: Cost = Cost()
    deliver: Cost = Cost()
    scale: Cost = Cost()
    pull: Cost = Cost()


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`waking_s`: what a thread that is ready usually waits though no thread of higher priority runs; each step does.
    `blocking_s`: the longest that it waits, because what has the core cannot be preempted. That is rare: each run of
    work meets it once. `preemption_s`: what a running thread loses each time a more important one wakes, beside the
    time that this one runs; on several cores it is moved to another. `card`: bytes per second, each way, that its
    network card carries of all its links together; 0: each of its links has a card of its own."""

    name: Name
    cores: Count = 1
    blocking_s: Some = 0.0
    preemption_s: Some = 0.0
    waking_s: Some = 0.0
    card: Some = 0.0
    costs: Costs | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Joins two nodes, both ways at `bandwidth` bytes per second each. `losses` is how often in a row it may lose the
    same message, and `lost_share` of how many messages it may lose anything. `other_rate` and `other_burst` are traffic
    that nobody declared. Without `priorities` the link serves all packets in the order in which they come."""

    a: Name
    b: Name
    bandwidth: Positive
    latency_s: Some = 0.0
    mtu: Annotated[int, msgspec.Meta(ge=576)] = 1500
    priorities: bool = True
    losses: Annotated[int, msgspec.Meta(ge=0)] = 0
    lost_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    other_rate: Some = 0.0
    other_burst: Some = 0.0

    def wire_bytes(self, size: float) -> int:
        """Of a message of that size, with everything that goes before and after it on the link."""
        chunk = self.mtu - IP_BYTES - HEADER_BYTES
        packets = max(1, math.ceil(size / chunk))
        return math.ceil(size) + packets * (HEADER_BYTES + IP_BYTES + ETHERNET_BYTES)

    @property
    def packet_bytes(self) -> int:
        """The largest packet on the wire."""
        return self.mtu + ETHERNET_BYTES


class Subscriber(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Gets every n-th message, of `scaled_bytes` if given; `at` is where that is done. `deadline_s` is from the
    publisher's release until the subscriber has handled it, which takes it `compute_s`. With `rate_hz`, from the least
    to the most messages a second, `fidelity` chooses `every`; with `sizes`, from the least to the most bytes of a
    message, it chooses `scaled_bytes`. Without a `transport` of its own it gets the stream's."""

    name: Name
    node: Name
    deadline_s: Positive | None = None
    every: Count = 1
    scaled_bytes: Positive | None = None
    at: str = "publisher"
    compute_s: Some = 0.0
    rate_hz: tuple[Positive, Positive] | None = None
    sizes: tuple[Positive, Positive] | None = None
    transport: str = ""

    @property
    def has_range(self) -> bool:
        return self.rate_hz is not None or self.sizes is not None

    @property
    def scales(self) -> bool:
        return self.every > 1 or self.scaled_bytes is not None


class Pull(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client that asks at most every `period_s` for the newest message, where `at` says that a buffer is. What it
    gets is at most `max_age_s` old when it has it."""

    name: Name
    node: Name
    period_s: Positive
    max_age_s: Positive | None = None
    at: str = "publisher"


class Stream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publisher on `node`: at most `bytes` every `period_s`, after computing for `compute_s`. `jitter_s` is how much
    later than its period the publisher may begin. Without `priority` the deadlines decide."""

    tag: Name
    node: Name
    period_s: Positive
    bytes: Positive
    compute_s: Some = 0.0
    jitter_s: Some = 0.0
    transport: str = "nak"
    priority: Class | None = None
    subscribers: tuple[Subscriber, ...] = ()
    pulls: tuple[Pull, ...] = ()

    @property
    def deadline_s(self) -> float:
        """The shortest that anybody has; infinite when nobody has one."""
        wanted = [one.deadline_s for one in self.subscribers] + [one.max_age_s for one in self.pulls]
        return min((one for one in wanted if one is not None), default=math.inf)


class OtherTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something else that computes on a node, by its own priority."""

    name: Name
    node: Name
    period_s: Positive
    compute_s: Positive
    deadline_s: Positive | None = None
    priority: Class | None = None


class System(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`costs` are those of nodes that give none themselves. With `rungs` threads have the priorities that a running
    mesh gives by itself (`priorities.by_default`): streams of one rung wait for each other."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...] = ()
    streams: tuple[Stream, ...] = ()
    tasks: tuple[OtherTask, ...] = ()
    costs: Costs | None = None
    rungs: bool = False

    def costs_of(self, node: Node) -> Costs:
        """Raises AdmissionError."""
        found = node.costs or self.costs
        if found is None:
            raise AdmissionError(
                "costs",
                f"nobody says what stages take on node {node.name!r}; write 'costs', or calibrate this machine",
            )
        return found


def ns(seconds: float) -> int:
    """Upwards, so that nothing gets shorter by rounding."""
    return math.ceil(round(seconds * NS, 3))
