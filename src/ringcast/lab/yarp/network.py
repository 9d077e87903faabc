"""The two networks of paper 003's Figure 4, with daemons: congestion at the sender's card, and at a switch. And that of
paper 001's experiment 5: a router between two hosts.

    card:    a ==100 Mbit/s== b           load and measured channel both leave by a's card, whose queue has three bands
    switch:  a --- hub ==100 Mbit/s== b   load comes from c; the hub's queue towards b serves code points in order
                    |                     (also with all addresses of IPv6)
                    c
    router:  a --- sa ==100 Mbit/s== r ==100 Mbit/s== sb --- b

A host of the router's network has no queues but those that its daemon makes for reservations: what is 100 Mbit/s is the
wire behind the host's switch. The daemons are told 95, so that what waits does so in their queues.

The card's queue is htb at 100 Mbit/s with pfifo_fast in it, which goes by the packet's priority. The switch's is htb
with a class for each code point of higher classes, by u32, for IPv4 and IPv6: a bridge zeroes the packet's priority.
"""

from __future__ import annotations

import itertools
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ringcast.lab.testbed.actor import Actor
from ringcast.lab.testbed.mesh_nodes import MeshNodes
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import Family, Topology, Wire
from ringcast.model.priority import CRITICAL, HIGH, TABLE
from ringcast.transport.urgent.service_curves import has_hfsc

Case = Literal["card", "switch", "switch-ipv6", "router"]
RATE = "100mbit"
LINK_BYTES_PER_S = 12_500_000
BURST_S = 0.02
LOAD_BYTES = 1400
WIRE_BYTES = 1400 + 48 + 28 + 14
"""Of a load message on the wire: datagram's header, IP and UDP, Ethernet."""
PACKET_S = 1514 * 8 / 100e6
PRIORITIES: dict[str, dict[str, Any]] = {
    "none": {"priority": "", "sched": ""},
    "thread": {"priority": "", "sched": "fifo:30"},
    "packet": {"priority": "high", "sched": ""},
    "both": {"priority": "high", "sched": "fifo:30"},
}
"""By the name of a bar."""
RESERVED: dict[str, Any] = {"priority": "high", "sched": "deadline:1ms/10ms", "bandwidth": "10mbit"}
"""A part of a core for each thread, and of the links: by the queues that daemons make, and by the router's class for
the code point."""
UNRESERVED = {"priority": "", "sched": "", "bandwidth": ""}
FLOODED: dict[str, Any] = {"priority": "critical", "sched": "fifo:30"}
"""What is measured beside a flood of other work for the daemons."""
REPAIRED = "lossy+nak:loss=5%,seed=7"
_CONFIG = '[limits]\nlink_rate = "95mbit"\n'
_ENDS = "ringcast.lab.yarp.ends"
_WIRES: dict[Case, Topology] = {
    "card": Topology((Wire(("a", "b"), rate=RATE, shaper="htb"),)),
    "switch": Topology((Wire(("a", "hub")), Wire(("c", "hub")), Wire(("hub", "b"), rate=RATE, shaper="htb")),
                       {"hub": "switch"}),
    "router": Topology(
        (Wire(("a", "sa")), Wire(("sa", "r"), rate=RATE, shaper="htb"), Wire(("r", "sb"), rate=RATE, shaper="htb"),
         Wire(("sb", "b"))),
        {"sa": "switch", "r": "router", "sb": "switch"},
    ),
}  # fmt: skip
_WIRES["switch-ipv6"] = _WIRES["switch"]


class Cell(NamedTuple):
    """One bar of Figure 5."""

    case: Case
    measured: str
    load: str
    share: float
    priority: str
    size: int
    proxy: str = ""
    """Where a proxy leaves every other message out on the way there: 'publisher', 'subscriber', or '' for none."""


class Trips(NamedTuple):
    taken_ns: list[int]
    lost: int
    schedules: list[str]
    """What the kernel had, meanwhile, of each thread on the way: two senders, two receivers, the application's two."""
    reserved: int = 0
    """How many of the two sending ends had their bandwidth reserved in the kernel's queues."""


class PriorityNetwork(Opened):
    """Of one case. Entering raises LabError."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._switched = case.startswith("switch")
        self._loader = "c" if self._switched else "a"
        self._names = itertools.count()
        self._batches = 0
        self._pairs: dict[tuple[str, str], tuple[str, Actor, Actor]] = {}
        self._loads: dict[str, tuple[str, Actor, Actor]] = {}
        self._floods: dict[str, Actor] = {}
        self.operations = 0
        """On tags, that floods have done."""
        self.mesh: MeshNodes

    def _open(self, stack: ExitStack) -> None:
        bed = stack.enter_context(Testbed(_WIRES[self.case]))
        bed.run_scripts(_queues(self.case), "cannot set up the queues")
        nodes = ["a", "b", "c"] if self._switched else ["a", "b"]
        config = None
        if self.case == "router":
            config = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ringcast-router-"))) / "ringcast.toml"
            config.write_text(_CONFIG)
        family: Family = 6 if self.case == "switch-ipv6" else 4
        self.mesh = stack.enter_context(MeshNodes(bed, nodes, family=family, config=config))

    def round_trips(self, cell: Cell, count: int) -> Trips:
        """Raises ActorFailed, LabError."""
        if self.case == "router":
            self._set(cell, RESERVED if cell.priority == "reserved" else UNRESERVED)
        else:
            self._set(cell, PRIORITIES[cell.priority])
        if not cell.share:
            return self._ping(cell, count)
        load, source, _ = self._load(cell.load)
        messages = max(1, round(cell.share * LINK_BYTES_PER_S * BURST_S / WIRE_BYTES))
        source.ask("begin", name=load, messages=messages, size=LOAD_BYTES, period_s=BURST_S)
        try:
            return self._ping(cell, count)
        finally:
            source.ask("end", name=load)

    def beside_flood(self, count: int, *, flood: bool) -> Trips:
        """Round trips of a critical channel; beside them tags are opened and destroyed on both nodes, which all daemons
        tell each other, and a channel of class low repairs what it loses. Raises ActorFailed, LabError,
        QosMismatch."""
        cell = Cell(self.case, "udp", "", 0.0, "flooded", 64)
        self._set(cell, FLOODED)
        if not flood:
            return self._ping(cell, count)
        load, source, _ = self._load(REPAIRED)
        self.mesh.sessions["a"].set_channel(load, priority="low")
        floods = [self._flood(node) for node in ("a", "b")]
        source.ask("begin", name=load, messages=20, size=LOAD_BYTES, period_s=BURST_S)
        for actor in floods:
            actor.ask("begin", name="flood")
        try:
            return self._ping(cell, count)
        finally:
            source.ask("end", name=load)
            for actor in floods:
                self.operations += actor.ask("end", name="flood")

    def repairs(self) -> int:
        """How often the channel of class low has asked for repairs so far."""
        rows = [row for row in self.mesh.sessions["b"].channels() if row.direction == "in"]
        return sum(row.counters.get("naks", 0) for row in rows if row.transport == REPAIRED)

    def _flood(self, node: str) -> Actor:
        if node not in self._floods:
            actor = self._floods[node] = self._actor(node)
            actor.ask("open", end=f"{_ENDS}:Flood", name="flood", tag=f"flood/{node}")
        return self._floods[node]

    def _set(self, cell: Cell, words: dict[str, Any]) -> None:
        name = self._pair(cell)[0]
        for tag in (f"{name}/there", f"{name}/back"):
            self.mesh.sessions["a"].set_channel(tag, **words)

    def set_while_flowing(self, transport: str, changes: int) -> tuple[int, int]:
        """How many messages were sent, and lost, while a channel's priority was set that often. Raises ActorFailed,
        LabError, QosMismatch."""
        tag = f"steady/{next(self._names)}"
        session = self.mesh.sessions["b"]
        sender = self._actor("a")
        sender.ask("open", end=f"{_ENDS}:Steady", name=tag, tag=tag, period_s=0.001)
        self.mesh.wait_for_publisher(tag)
        with session.tag(tag).subscribe(transport=transport, reliable=transport == "tcp") as sub:
            first = sub.recv(timeout=10).seq
            for number in range(changes):
                change = list(PRIORITIES.values())[number % len(PRIORITIES)]
                self.mesh.sessions["a"].set_channel(tag, **change)
            sent = sender.ask("end", name=tag)
            came = lost = 0
            while came + lost < sent - first - 1:
                message = sub.recv(timeout=10)
                came, lost = came + 1, lost + message.lost
        sender.ask("close", name=tag)
        return sent - first, lost

    def in_force(self, tag: str) -> list[Any]:
        """What the kernels of both ends have of a tag's channels."""
        rows = [*self.mesh.sessions["a"].channels(), *self.mesh.sessions["b"].channels()]
        return [row.in_force for row in rows if row.tag == tag]

    def _ping(self, cell: Cell, count: int) -> Trips:
        name, ping, echo = self._pair(cell)
        self._batches += 1  # a seed of its own for each: pauses are not in step with the bursts
        found = ping.ask("ping", timeout_s=60 + count, name=name, count=count, size=cell.size, seed=self._batches)
        ends = [one for way in ("there", "back") for one in self.in_force(f"{name}/{way}") if one is not None]
        threads = [*(one.sched for one in ends), found["schedule"], echo.ask("schedule", name=name)]
        return Trips(found["taken_ns"], found["lost"], threads, sum(bool(one.bandwidth) for one in ends))

    def _pair(self, cell: Cell) -> tuple[str, Actor, Actor]:
        key = transport, proxy = cell.measured, cell.proxy
        if key not in self._pairs:
            name = f"measured/{next(self._names)}"
            there, back = f"{name}/there", f"{name}/back"
            ping, echo = self._actor("a"), self._actor("b")
            options: dict[str, Any] = {"there": there, "back": back, "transport": transport}
            every = 2 if proxy else 1
            ping.ask("open", end=f"{_ENDS}:Ping", name=name, every=every, **options)
            self.mesh.wait_for_publisher(there)
            echo.ask("open", end=f"{_ENDS}:Echo", name=name, every=every, at=proxy or "publisher", **options)
            self.mesh.wait_for_publisher(back)
            ping.ask("match", name=name)
            self._pairs[key] = (name, ping, echo)
        return self._pairs[key]

    def _load(self, transport: str) -> tuple[str, Actor, Actor]:
        if transport not in self._loads:
            tag = f"load/{next(self._names)}"
            source, sink = self._actor(self._loader), self._actor("b")
            source.ask("open", end=f"{_ENDS}:Load", name=tag, tag=tag)
            self.mesh.wait_for_publisher(tag)
            sink.ask("open", end=f"{_ENDS}:Sink", name=tag, tag=tag, transport=transport)
            source.ask("match", name=tag)
            self._loads[transport] = (tag, source, sink)
        return self._loads[transport]

    def _actor(self, node: str) -> Actor:
        return self._stack.enter_context(Actor(self.mesh.bed.node(node)))


def _queues(case: Case) -> dict[str, str]:
    """By node."""
    if case == "card":
        return {"a": _CARD.format("b")}
    switched = case.startswith("switch")
    return {"hub": switch_queues("to-b", has_hfsc())} if switched else {"r": switch_queues("to-sb", has_hfsc())}


_CARD = "tc qdisc replace dev to-{} parent 1:10 handle 11: pfifo_fast"


def switch_queues(dev: str, hfsc: bool) -> str:
    """Towards b: what has the code points of higher classes goes first. By HFSC where the kernel has it, whose
    real-time curve they have; else by HTB."""
    shape = "burst 1600 cburst 1600 quantum 1514"
    kind = "hfsc" if hfsc else "htb"
    whole = f"ls rate {RATE} ul rate {RATE}" if hfsc else f"rate {RATE} ceil {RATE} {shape}"
    first = f"rt rate 95mbit ls rate 95mbit ul rate {RATE}" if hfsc else f"rate 95mbit ceil {RATE} prio 0 {shape}"
    rest = f"ls rate 5mbit ul rate {RATE}" if hfsc else f"rate 5mbit ceil {RATE} prio 1 {shape}"
    lines = [
        f"tc qdisc delete dev {dev} root",
        f"tc qdisc add dev {dev} root handle 1: {kind} default 20",
        f"tc class add dev {dev} parent 1: classid 1:1 {kind} {whole}",
        f"tc class add dev {dev} parent 1:1 classid 1:10 {kind} {first}",
        f"tc class add dev {dev} parent 1:1 classid 1:20 {kind} {rest}",
        f"tc qdisc add dev {dev} parent 1:10 handle 10: pfifo limit 1000",
        f"tc qdisc add dev {dev} parent 1:20 handle 20: pfifo limit 1000",
    ]
    for name in (HIGH, CRITICAL):
        octet = f"0x{TABLE[name].dscp << 2:02x} 0xfc"
        filters = f"tc filter add dev {dev} parent 1: prio"
        lines += [
            f"{filters} 1 protocol ip u32 match ip dsfield {octet} flowid 1:10",
            f"{filters} 2 protocol ipv6 u32 match ip6 priority {octet} flowid 1:10",
        ]
    return "\n".join(lines)
