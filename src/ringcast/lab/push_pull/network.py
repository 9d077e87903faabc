"""The papers' network and the round trips on it.

An Ethernet (a switch) with nodes a, b and c, two routers behind it, and a node behind each: from a it is one hop to b,
two to d and three to e. The publisher is on a, the intermediate node is c. All processes and daemons run on one core:
what is measured is the work, and not how the kernel spreads it.

    a   b   c
    |   |   |
    +-switch-+--- r1 --- r2
                  |      |
                  d      e
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

import msgspec

from ringcast.lab.measuring.report import Steps
from ringcast.lab.measuring.round_trip import FRAME_BYTES
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import Topology, Wire

NONE, PUBLISHER, SUBSCRIBER, INTERMEDIATE = (
    "no proxy", "proxy at publisher", "proxy at subscriber", "proxy at intermediate node",
)  # fmt: skip
HERE, THERE, BETWEEN = "a", "b", "c"
HOPS = {0: "a", 1: "b", 2: "d", 3: "e"}
SIZES = (1, 64, 256, 512, 1024, 1536, 1792)
ROUND_TRIPS = 100
LEAST_ROUNDS, TOGETHER_S = 2, 10.0
"""Where all experiments run in their quick forms."""
_WARM_UP = 30
UDP, NAK = "udp", "nak"
"""The papers used UDP, and so do we; nak, the default here, is measured besides."""
FRAMES_PAUSE_S = 0.0003
"""The pause before a timed message, so that messages before it, which a proxy leaves out, are done with."""
_AT = {NONE: "publisher", PUBLISHER: "publisher", SUBSCRIBER: "subscriber", INTERMEDIATE: f"node:{BETWEEN}"}

TOPOLOGY = Topology(
    tuple(
        Wire(ends) for ends in (
            ("a", "hub"), ("b", "hub"), ("c", "hub"), ("r1", "hub"), ("r1", "d"), ("r1", "r2"), ("r2", "e"),
        )
    ),
    {"hub": "switch", "r1": "router", "r2": "router"},
)  # fmt: skip


Work = Literal["", "every 2", "frames"]


class Arrangement(msgspec.Struct, frozen=True):
    """Where everything is: the subscribers, `hops` away, of which the last answers, and the proxy."""

    hops: int
    proxy: str = NONE
    subscribers: int = 1
    transport: str = UDP
    scaling: Work = ""
    """What a proxy has to do: nothing, leave every other message out, or make arrays of a size that they have. With
    "no proxy" it is what these are compared with: the same messages at the same moments, as they are."""

    @property
    def every(self) -> int:
        return 2 if self.scaling == "every 2" and self.proxy != NONE else 1

    @property
    def options(self) -> dict[str, Any]:
        """Of the subscription that answers."""
        side = math.isqrt(FRAME_BYTES) if self.scaling == "frames" and self.proxy != NONE else 0
        return {"every": self.every, "frames": self.scaling == "frames", "side": side}

    @property
    def way(self) -> list[str]:
        """The nodes with daemons that a message goes through."""
        middle = [BETWEEN] if self.proxy == INTERMEDIATE else []
        return [HERE, *middle, HOPS[self.hops]]


Batches = dict[tuple[Arrangement, int], list[list[int]]]
"""Nanoseconds of round trips by arrangement and size: a batch per round."""


class PushPullNetwork(Opened):
    """The network with a daemon on each host. Entering raises LabError."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._actors: dict[tuple[str, int], Actor] = {}
        self._opened: dict[Arrangement, str] = {}
        self.mesh: MeshNodes

    def _open(self, stack: ExitStack) -> None:
        bed = stack.enter_context(Testbed(TOPOLOGY))
        self.mesh = stack.enter_context(MeshNodes(bed, ["a", "b", "c", "d", "e"]))

    def actor(self, node: str, number: int = 0) -> Actor:
        """A measuring process on that node, started when it is first asked for."""
        if (node, number) not in self._actors:
            self._actors[node, number] = self._stack.enter_context(Actor(self.mesh.bed.node(node)))
        return self._actors[node, number]

    def tag(self) -> str:
        """A name that nobody used yet."""
        return f"push-pull/{next(self._numbers)}"

    def pin(self, **cores: int) -> None:
        """Bind nodes, daemon and processes, to cores; those not named to the first."""
        first = affinity.cores()[0]
        self.mesh.pin({name: cores.get(name, first) for name in self.mesh.names})
        for (node, _), actor in self._actors.items():
            actor.pin(cores.get(node, first))

    def arrange(self, arrangement: Arrangement) -> None:
        """Open the ends of it and wait until a message has gone round. Does nothing the second time.

        Raises ActorFailed, LabError.
        """
        if arrangement in self._opened:
            return
        tag = self.tag()
        there, back, node = f"{tag}/there", f"{tag}/back", HOPS[arrangement.hops]
        ping = self.actor(HERE)
        how: dict[str, Any] = {"transport": arrangement.transport}
        frames = arrangement.scaling == "frames"
        ping.ask("open", end="ping", name=tag, there=there, back=back, frames=frames, **how)
        self.mesh.wait_for_publisher(there)
        heard = there
        if arrangement.hops == 0 and arrangement.proxy == INTERMEDIATE:
            heard = self._relay(tag, there)
        at = _AT[arrangement.proxy] if heard == there else "publisher"
        # Process 0 of node a is the one that asks.
        first = 1 if node == HERE else 0
        for number in range(first, first + arrangement.subscribers - 1):
            self.actor(node, number).ask("open", end="listener", name=tag, there=heard, at=at, **how)
        echo = self.actor(node, first + arrangement.subscribers - 1)
        echo.ask("open", end="echo", name=tag, there=heard, back=back, at=at, **arrangement.options, **how)
        if heard == there and arrangement.hops:
            self.mesh.wait_for_way(there, *arrangement.way)
        echo.ask("match", name=tag)
        ping.ask("match", name=tag, subscribers=arrangement.subscribers if heard == there else 1)
        self._opened[arrangement] = tag

    def _relay(self, tag: str, there: str) -> str:
        """A proxy that is a process, because no channel goes from a node to itself."""
        onward = f"{tag}/onward"
        self.actor(BETWEEN).ask("open", end="relay", name=tag, there=there, onward=onward)
        self.mesh.wait_for_publisher(onward)
        self.mesh.wait_for_way(there, HERE, BETWEEN)
        return onward

    def round_trips(self, arrangement: Arrangement, size: int, count: int = ROUND_TRIPS) -> list[int]:
        """Raises ActorFailed."""
        ping, tag = self.actor(HERE), self._opened[arrangement]
        how = {"every": arrangement.every, "pause_s": FRAMES_PAUSE_S if arrangement.scaling else 0.0}
        ping.ask("ping", name=tag, count=_WARM_UP, size=size, **how)
        taken: list[int] = ping.ask("ping", name=tag, count=count, size=size, **how)
        return taken


def collect(
    network: PushPullNetwork, wanted: Sequence[tuple[Arrangement, int]], rounds: int, steps: Steps
) -> Batches:  # fmt: skip
    """Each of these once per round, each round in the opposite order: the machine's drift hits all alike.

    Within a round, arrangements that are compared at one size are neighbours. Raises ActorFailed, LabError.
    """
    arrangements = list(dict.fromkeys(arrangement for arrangement, _ in wanted))
    steps.expect(len(arrangements) + rounds)
    for arrangement in arrangements:
        steps.step(f"opening: {arrangement.proxy}, hops: {arrangement.hops}, subscribers: {arrangement.subscribers}")
        network.arrange(arrangement)
    network.pin()
    ordered = sorted(dict.fromkeys(wanted), key=lambda pair: pair[1])
    batches: Batches = defaultdict(list)
    for number in steps.rounds(rounds, LEAST_ROUNDS, TOGETHER_S):
        steps.step(f"round trips, round {number + 1} of {rounds}")
        for arrangement, size in ordered if number % 2 == 0 else reversed(ordered):
            batches[arrangement, size].append(network.round_trips(arrangement, size))
    return batches
