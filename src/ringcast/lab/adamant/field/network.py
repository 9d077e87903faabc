"""Nodes that publish and their receivers' around a switch, a daemon on each, and streams across them while the kernel
loses packets.

Packets are lost where they arrive at the receivers, and only there, as in the simulator and in the paper: data, what
repairs it, heartbeats, the receivers' repairs for each other, and tcp's segments alike; also what daemons tell each
other. One process per receiver, one for the publisher.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ringcast.lab.adamant.field import observation
from ringcast.lab.adamant.field.plan import PAYLOAD_BYTES, Contender
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.simulation.packet_loss import Outcome
from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.mesh_nodes import PATIENCE_PER_NODE_S, PATIENCE_S, MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import star

WARM_UP = 20
"""Updates that are not counted: addresses are resolved, receivers learn the rate."""
REST_S = {True: 5.0, False: 1.0}
"""How long the last update is waited for, by whether the transport promises it."""
TOGETHER_S = 60.0
"""For many streams to be opened, or to end."""
HUB = "hub"


class FieldNetwork(Opened):
    """Entering raises LabError. The first nodes publish, one of them unless more are asked for."""

    def __init__(self, receivers: int, publishers: int = 1) -> None:
        self._topology = star(publishers + receivers)
        self._publishers = publishers
        self._numbers = itertools.count()
        self._actors: dict[str, Actor] = {}
        self.mesh: MeshNodes

    def _open(self, stack: ExitStack) -> None:
        bed = stack.enter_context(Testbed(self._topology))
        names = [node.name for node in bed.nodes]
        self.mesh = stack.enter_context(MeshNodes(bed, names))

    @property
    def here(self) -> str:
        return self.mesh.names[0]

    @property
    def homes(self) -> list[str]:
        """All nodes that publish."""
        return self.mesh.names[: self._publishers]

    def there(self, count: int) -> list[str]:
        return self.mesh.names[self._publishers :][:count]

    def socket(self, node: str) -> str:
        """Of its daemon: a file, which processes on other nodes see too."""
        return self.mesh.bed.node(node).environment["RINGCAST_SOCKET"]

    def tag(self) -> str:
        return f"field/{next(self._numbers)}"

    def actor(self, node: str) -> Actor:
        """The measuring process on that node, started when it is first asked for."""
        if node not in self._actors:
            self._actors[node] = self._stack.enter_context(Actor(self.mesh.bed.node(node)))
        return self._actors[node]

    def start(self, nodes: Sequence[str]) -> None:
        """Start processes there, all at once, and wait for them: one that starts during a measurement would disturb it.

        Raises ActorFailed.
        """
        for node in nodes:
            self.actor(node).post("connect")
        for node in nodes:
            self.actor(node).reply(PATIENCE_S + PATIENCE_PER_NODE_S * len(nodes))

    def lose(self, share: float, nodes: Sequence[str], burst: float = 1.0) -> None:
        """Drop that share of what arrives at these nodes, so many in a row on average. Where several nodes publish, the
        same packets of each are lost; with one, bursts are of all packets that arrive. Raises LabError."""
        loss = f"{share} in bursts of {burst:g}" if share and burst > 1 else share or None
        senders = [self.mesh.bed.node(home).address() for home in self.homes] if self._publishers > 1 else []
        for node in nodes:
            self.mesh.bed.link(node, HUB).set_loss(loss, to=node, senders=senders)

    def packets(self, node: str) -> tuple[int, int]:
        """(packets, bytes) that left a node so far."""
        lines = Path(f"/proc/{self.mesh.pids[node]}/net/dev").read_text().splitlines()
        fields = next(line for line in lines if line.strip().startswith(f"to-{HUB}:")).split()
        return int(fields[10]), int(fields[9])

    def run(self, cell: Cell, contender: Contender, updates: int) -> Outcome:
        """One stream through real daemons and sockets. Raises ActorFailed, LabError."""
        tag, nodes = self.tag(), self.there(cell.receivers)
        publisher, receivers = self.actor(self.here), [self.actor(node) for node in nodes]
        publisher.ask("open", end="steady publisher", name=tag, tag=tag)
        self.mesh.wait_for_publisher(tag)
        for receiver in receivers:
            receiver.post(
                "open", end="latency recorder", name=tag, tag=tag, transport=contender.asked, ordered=contender.ordered
            )
        for receiver in receivers:
            receiver.reply()
        for node in nodes:
            self.mesh.wait_for_way(tag, self.here, node)
        publisher.ask("match", name=tag, subscribers=len(nodes))
        self.lose(cell.loss, nodes)
        try:
            heard, sent = self._stream(cell, contender, tag, updates)
        finally:
            self.lose(0.0, nodes)
        for actor in (*receivers, publisher):
            actor.ask("close", name=tag)
        return observation.outcome(cell, contender, updates, heard, WARM_UP, sent)

    def run_together(self, cell: Cell, contenders: Sequence[Contender], updates: int) -> list[Outcome]:
        """A stream of each, side by side, each on a tag of its own: at low rates they leave each other the cores, and
        the kernel loses packets independently. Packets on the wire cannot be told apart, and are not counted. Raises
        ActorFailed, LabError."""
        nodes, tags = self.there(cell.receivers), [self.tag() for _ in contenders]
        publisher, receivers = self.actor(self.here), [self.actor(node) for node in nodes]
        publisher.ask("open", end="side by side", name=tags[0], tags=tags)
        self.mesh.wait_for_publisher(*tags)
        asked = {tag: (one.asked, one.ordered) for tag, one in zip(tags, contenders, strict=True)}
        for receiver in receivers:
            receiver.post("open", end="recorders", name=tags[0], asked=asked)
        for receiver in receivers:
            receiver.reply(TOGETHER_S)
        for node in nodes:
            for tag in tags:
                self.mesh.wait_for_way(tag, self.here, node)
        publisher.ask("match", name=tags[0], subscribers=len(nodes))
        self.lose(cell.loss, nodes)
        try:
            how: dict[str, Any] = {"tags": tags, "rate_hz": cell.rate_hz, "size": PAYLOAD_BYTES}
            publisher.ask("publish", name=tags[0], count=WARM_UP, timeout_s=WARM_UP / cell.rate_hz + 10, **how)
            seconds = updates / cell.rate_hz
            publisher.ask("publish", name=tags[0], count=updates, timeout_s=seconds + 10, **how)
            for receiver in receivers:
                receiver.post("taken", name=tags[0], quiet_s=REST_S[False])
            heard = [receiver.reply(TOGETHER_S) for receiver in receivers]
        finally:
            self.lose(0.0, nodes)
        for actor in (*receivers, publisher):
            actor.ask("close", name=tags[0])
        nothing = observation.Sent((0, 0), (0, 0))
        return [
            observation.outcome(cell, one, updates, [observation.Heard(*of[tag]) for of in heard], WARM_UP, nothing)
            for tag, one in zip(tags, contenders, strict=True)
        ]

    def _stream(
        self, cell: Cell, contender: Contender, tag: str, updates: int
    ) -> tuple[list[observation.Heard], observation.Sent]:
        nodes = self.there(cell.receivers)
        publisher, receivers = self.actor(self.here), [self.actor(node) for node in nodes]
        seconds = (updates + WARM_UP) / cell.rate_hz
        limit_s = seconds + REST_S[contender.complete]
        for receiver in receivers:
            receiver.post("record", name=tag, last=updates + WARM_UP - 1, limit_s=limit_s)
        how: dict[str, Any] = {"name": tag, "rate_hz": cell.rate_hz, "size": PAYLOAD_BYTES}
        publisher.ask("publish", count=WARM_UP, **how)
        time.sleep(1 / cell.rate_hz)
        everywhere = [self.here, *nodes]
        before = [self.packets(node) for node in everywhere]
        late_ns = publisher.ask("publish", seconds + 10, count=updates, **how)
        heard = [receiver.reply(limit_s + 10) for receiver in receivers]
        after = [self.packets(node) for node in everywhere]
        gone = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after, strict=True)]
        counters = [self._counters(node, tag) for node in nodes]
        return (
            [observation.Heard(h["seqs"], h["latencies_ns"]) for h in heard],
            observation.Sent(gone[0], (sum(g[0] for g in gone[1:]), sum(g[1] for g in gone[1:])),
                             sum(c.get("naks", 0) for c in counters), late_ns),
        )  # fmt: skip

    def _counters(self, node: str, tag: str) -> dict[str, int]:
        rows = [row for row in self.mesh.sessions[node].channels(why=False) if (row.tag, row.direction) == (tag, "in")]
        return rows[0].counters if rows else {}
