"""A network of the testbed as values: nodes and wires as they are written, and the plan of addresses and routes. Pure.

A node is a `host`, a `router` (forwards, and runs commands like a host) or a `switch` (a bridge without addresses). A
segment is what one broadcast reaches: a wire between two machines, or all wires that switches join. Every segment has
an IPv4 and an IPv6 network, and every machine one primary address per family, that of its first wire, which is the
source of all it sends: its peers know it by one address, whichever way a packet came.

Invariant: a `Plan` exists only for a network in which every machine reaches every other and no switches form a loop.
Must not know namespaces, commands or processes.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ringcast.errors import RingcastError

Kind = Literal["host", "router", "switch"]
Family = Literal[4, 6]
Address = IPv4Interface | IPv6Interface

# An interface is called to-<peer>, and Linux allows it 15 characters.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,10}[A-Za-z0-9])?")
_RATE = re.compile(r"(\d+(?:\.\d+)?)([kmg]?)bit")
_POWERS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_MAX_MACHINES_PER_SEGMENT = 254
_EXAMPLE = '[[links]] with between = ["a", "b"] and, if wanted, rate = "10mbit" and loss = "1%"'


class TopologyError(RingcastError, ValueError):
    """A network that cannot be built as it is written, or a name that is not in it."""


MOST_IN_A_ROW, MOST_IN_BURSTS = 50.0, 0.5
"""Packets, and the share of all."""


class Loss(NamedTuple):
    """Which packets are lost: each with this probability, or, when `every` is above 0, exactly every n-th. With `burst`
    above 1 the same share, but so many in a row on average."""

    probability: float = 0.0
    every: int = 0
    burst: float = 1.0

    @classmethod
    def parse(cls, text: str | float) -> Loss:
        """`0.03`, `3%`, `every 100` or `5% in bursts of 4`. Raises TopologyError."""
        words = str(text).split()
        burst = 1.0
        try:
            if words[1:4] == ["in", "bursts", "of"]:
                words, burst = words[:1], float(*words[4:])
                if not 1 <= burst <= MOST_IN_A_ROW or words == ["every"]:
                    raise ValueError
            if words[:1] == ["every"]:
                (count,) = words[1:]
                loss = cls(every=int(count))
                good = 1 <= loss.every <= 1 << 20
            else:
                (share,) = words
                loss = cls(float(share[:-1]) / 100 if share.endswith("%") else float(share), burst=burst)
                good = 0 <= loss.probability <= (1 if burst == 1 else MOST_IN_BURSTS)
                loss = loss if loss.probability else cls()
        except ValueError:
            good = False
        if not good:
            raise TopologyError(f"{text!r} is not a loss; write it as 3%, 0.03, 'every 100' or '5% in bursts of 4'")
        return loss


def bits_per_second(rate: str) -> int:
    """`10mbit` as a number. Raises TopologyError."""
    found = _RATE.fullmatch(rate)
    bits = int(float(found[1]) * _POWERS[found[2]]) if found else 0
    if not 1000 <= bits <= 10**12:
        raise TopologyError(f"{rate!r} is not a rate; write it as 500kbit, 10mbit or 1gbit")
    return bits


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What joins two nodes. Rate and loss hold in each direction; without a rate it is as fast as the machine."""

    between: tuple[str, str]
    rate: str | None = None
    loss: str | float | None = None
    shaper: Literal["tbf", "htb"] = "tbf"

    def __post_init__(self) -> None:
        if self.rate is not None:
            bits_per_second(self.rate)
        if self.loss is not None:
            Loss.parse(self.loss)

    def __str__(self) -> str:
        return "-".join(self.between)


class Topology(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a topology file says. `rate` and `loss` hold for wires that say nothing; nodes not listed are hosts.

    `offload` lets wires carry up to 64 KiB in one piece, as the driver of a network card takes it: fast, but then a
    loss takes a piece and not a packet.
    """

    links: tuple[Wire, ...]
    nodes: dict[str, Kind] = {}
    rate: str | None = None
    loss: str | float | None = None
    offload: bool = False

    @classmethod
    def parse(cls, text: str, source: str = "the topology") -> Topology:
        """Read TOML. Raises TopologyError, which names `source`."""
        try:
            return msgspec.toml.decode(text, type=cls)
        except msgspec.DecodeError as exc:  # a ValidationError is one too
            raise TopologyError(f"{source}: {exc}; a link is written as {_EXAMPLE}") from exc

    @classmethod
    def load(cls, path: Path) -> Topology:
        """Raises TopologyError."""
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as exc:
            raise TopologyError(f"cannot read the topology {path}: {exc}") from exc
        return cls.parse(text, str(path))


def pair(rate: str | None = None, loss: str | float | None = None) -> Topology:
    """Two hosts and a wire: `a-b`."""
    return chain(2, rate, loss)


def chain(count: int, rate: str | None = None, loss: str | float | None = None) -> Topology:
    """`a-b-c-...`: the two ends are hosts and all between them are routers. Raises TopologyError."""
    names = _names(count, "chain")
    wires = tuple(Wire(ends) for ends in itertools.pairwise(names))
    return Topology(wires, dict.fromkeys(names[1:-1], "router"), rate, loss)


def star(
    count: int, rate: str | None = None, loss: str | float | None = None, hub: Literal["switch", "router"] = "switch"
) -> Topology:
    """Hosts `a`, `b`, ... around `hub`: a switch, so that multicast reaches all, or a router. Where all talk to all,
    more than thirty need a router: the kernel knows 1,024 neighbours of all namespaces together. Raises
    TopologyError."""
    return Topology(tuple(Wire((name, "hub")) for name in _names(count, "star")), {"hub": hub}, rate, loss)


def _names(count: int, shape: str) -> list[str]:
    if not 2 <= count <= _MAX_MACHINES_PER_SEGMENT:
        raise TopologyError(f"a {shape} has from 2 to {_MAX_MACHINES_PER_SEGMENT} nodes, not {count}")
    return [chr(ord("a") + index) if index < 26 else f"n{index + 1}" for index in range(count)]


class Port(NamedTuple):
    """A node's end of a wire. A switch's has no addresses."""

    node: str
    peer: str
    wire: Wire
    segment: int
    addresses: dict[Family, Address]

    @property
    def interface(self) -> str:
        return f"to-{self.peer}"


class Route(NamedTuple):
    """How a machine reaches a segment: out of this port, to this port of a router (None: it is on the segment)."""

    segment: int
    out: Port
    gateway: Port | None


class Plan:
    """A topology worked out: `kinds` by node, `ports` by node in the order of its wires, and the routes.

    Raises TopologyError when there can be no such network.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.wires = tuple(
            Wire(w.between, w.rate or topology.rate, topology.loss if w.loss is None else w.loss, w.shaper)
            for w in topology.links
        )
        self.kinds: dict[str, Kind] = {n: topology.nodes.get(n, "host") for w in self.wires for n in w.between}
        _check_names(self.wires, topology.nodes)
        self.ports: dict[str, list[Port]] = {name: [] for name in self.kinds}
        for segment, wires in enumerate(_segments(self.wires, self.kinds)):
            self._number(segment, wires)
        self._members: dict[int, list[Port]] = {}
        for name in self.machines:
            # The first wire that the file names gives the primary address, whichever segment was found first.
            self.ports[name].sort(key=lambda port: self.wires.index(port.wire))
            for port in self.ports[name]:
                self._members.setdefault(port.segment, []).append(port)
        self.routes = {name: self._routes(name) for name in self.machines}

    @property
    def machines(self) -> list[str]:
        """Hosts and routers, in the order of the wires."""
        return [name for name, kind in self.kinds.items() if kind != "switch"]

    def port(self, node: str, peer: str | None = None) -> Port:
        """The end at `node` of its wire to `peer`, or of its first wire. Raises TopologyError."""
        for port in self.ports.get(node, ()):
            if peer in (None, port.peer):
                return port
        missing = f"link {node}-{peer}" if peer else f"node {node!r}"
        raise TopologyError(f"there is no {missing} in {', '.join(map(str, self.wires))}")

    def address(self, node: str, family: Family = 4, toward: str | None = None) -> Address:
        """The primary address, or that of the wire to a neighbour. Raises TopologyError."""
        port = self.port(node, toward)
        if family not in port.addresses:
            raise TopologyError(f"{node!r} is a switch and has no address; ask a host or a router")
        return port.addresses[family]

    def network(self, segment: int, family: Family) -> IPv4Network | IPv6Network:
        return self._members[segment][0].addresses[family].network

    def _number(self, segment: int, wires: list[Wire]) -> None:
        host = 0
        for wire in wires:
            for node, peer in (wire.between, wire.between[::-1]):
                addresses: dict[Family, Address] = {}
                if self.kinds[node] != "switch":
                    host += 1
                    addresses[4] = IPv4Interface(f"10.{segment >> 8}.{segment & 255}.{host}/24")
                    addresses[6] = IPv6Interface(f"fd72:6361:7374:{segment:x}::{host:x}/64")
                    if any(port.segment == segment for port in self.ports[node]):
                        raise TopologyError(f"{node!r} is wired twice to the same switches; once is enough")
                self.ports[node].append(Port(node, peer, wire, segment, addresses))
        if host > _MAX_MACHINES_PER_SEGMENT:
            raise TopologyError(f"{host} machines on one segment are too many: at most {_MAX_MACHINES_PER_SEGMENT} fit")

    def _routes(self, start: str) -> list[Route]:
        """The nearest way to every segment, breadth first; equal ways are decided by the order of the wires."""
        found: dict[int, Route] = {}
        queue: deque[tuple[str, Route | None]] = deque([(start, None)])
        visited = {start}
        while queue:
            node, way = queue.popleft()
            for port in self.ports[node]:
                if port.segment in found:
                    continue
                found[port.segment] = way._replace(segment=port.segment) if way else Route(port.segment, port, None)
                for there in self._members[port.segment]:
                    if there.node not in visited and self.kinds[there.node] == "router":
                        visited.add(there.node)
                        queue.append((there.node, way or Route(port.segment, port, there)))
        if missed := set(self._members) - set(found):
            behind = [port.node for port in self._members[min(missed)]]
            behind.sort(key=lambda name: any(port.segment in found for port in self.ports[name]))
            raise TopologyError(f"{start!r} cannot reach {behind[0]!r}: add a link, or make the nodes between routers")
        return list(found.values())


def _check_names(wires: tuple[Wire, ...], declared: dict[str, Kind]) -> None:
    if not wires:
        raise TopologyError(f"there are no links; write {_EXAMPLE}")
    named = {name for wire in wires for name in wire.between}
    for name in sorted(named):
        if not _NAME.fullmatch(name):
            raise TopologyError(f"{name!r} is not a node's name: up to 12 letters, digits and - (not at the ends)")
    if alone := sorted(set(declared) - named):
        raise TopologyError(f"no link goes to {', '.join(alone)}")
    seen: set[frozenset[str]] = set()
    for wire in wires:
        ends = frozenset(wire.between)
        if len(ends) == 1 or ends in seen:
            raise TopologyError(f"{wire} " + ("joins a node to itself" if len(ends) == 1 else "is there twice"))
        seen.add(ends)


def _segments(wires: tuple[Wire, ...], kinds: dict[str, Kind]) -> list[list[Wire]]:
    """Wires that share a switch share a segment."""
    segments: list[list[Wire]] = []
    switches_of: list[set[str]] = []
    for wire in wires:
        switches = {name for name in wire.between if kinds[name] == "switch"}
        joined = [at for at, others in enumerate(switches_of) if others & switches]
        if len(switches) == 2 and len(joined) == 1 and switches <= switches_of[joined[0]]:
            raise TopologyError(f"the link {wire} closes a loop of switches, in which a broadcast never ends")
        merged = [*(other for at in joined for other in segments[at]), wire]
        switches.update(*(switches_of[at] for at in joined))
        segments = [old for at, old in enumerate(segments) if at not in joined] + [merged]
        switches_of = [old for at, old in enumerate(switches_of) if at not in joined] + [switches]
    return segments
