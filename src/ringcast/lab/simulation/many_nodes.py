"""Many nodes in one process, in virtual time: the code that daemons run, over links that may fail in many ways.

A discrete-event simulation: the seed decides everything, so a run repeats exactly. Each node has a clock of its own,
far from the others'. Links keep order by default; they can lose, repeat and reorder messages, be cut by a
partition, and break. Owns no socket and knows no real time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from ringcast.control.peering import LENGTH_BYTES, PeerMessage, TableDelta, decode_untrusted, encode_frame
from ringcast.daemon.mesh.core.cluster import Cluster
from ringcast.daemon.mesh.core.events import (
    Action,
    Close,
    Connect,
    DialFailed,
    Event,
    Leave,
    LinkDown,
    LinkUp,
    LocalChanges,
    Received,
    Send,
    Tick,
)
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.daemon.table.rows import Change
from ringcast.daemon.table.table import TagTable

_S = 1_000_000_000
_MS = 1_000_000
DIAL_TIMEOUT_NS = 2 * _S


class SimulatedNode:
    """A daemon that may be running or not. `skew_ns` is how far its clocks are from virtual time."""

    def __init__(self, name: str, address: str, skew_ns: int) -> None:
        self.name = name
        self.address = address
        self.skew_ns = skew_ns
        self.side = 0
        self.running = False
        self.table: TagTable
        self.cluster: Cluster
        self.links: dict[int, _Pipe] = {}
        self.due_ns: int | None = None
        self.seen: list[Action] = []
        """Actions for the daemon's shell, except sending and dialling."""
        self.largest_bytes = 0
        self.depth: int | None = None
        """In how many steps a change got here, while one is followed (`follow`)."""


class _Pipe:
    """One direction of a link: `number` is the receiver's name for it."""

    __slots__ = ("back", "broken", "last_ns", "number", "to")

    def __init__(self, to: SimulatedNode, number: int) -> None:
        self.to = to
        self.number = number
        self.back: _Pipe
        self.last_ns = 0
        self.broken = False


class MeshSimulation:
    def __init__(
        self,
        *,
        seed: int,
        timing: Timing | None = None,
        latency_ms: tuple[float, float] = (0.1, 1.0),
        max_skew_s: float = 3600.0,
        through_wire: bool = False,
    ) -> None:
        self.now_ns = 0
        self.nodes: dict[str, SimulatedNode] = {}
        self.loss = self.repeat = self.reorder = 0.0
        """Probabilities, of each message."""
        self.sent: dict[type[Any], tuple[int, int]] = {}
        """Messages and bytes, by kind."""
        self._rng = Random(seed)
        self._timing = timing
        self._latency_ns = (int(latency_ms[0] * _MS), int(latency_ms[1] * _MS))
        self._max_skew_ns = int(max_skew_s * _S)
        self._through_wire = through_wire
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)
        self._addresses: dict[str, SimulatedNode] = {}

    # ------------------------------------------------------------------ what may happen

    def start(
        self, name: str, seeds: Iterable[str] = (), *, address: str = "", old_identity: bool = False,
        first_tick_s: float = 0.0,
    ) -> SimulatedNode:  # fmt: skip
        """A daemon of that name starts, on the machine at `address`; `seeds` are names of nodes. It does nothing by
        itself before `first_tick_s`.

        If one ran there before, nothing is left of it, or with `old_identity` only its number.
        """
        key = address or f"{name}:1"
        node = self._addresses.get(key)
        if node is None:
            skew_ns = self._rng.randint(-self._max_skew_ns, self._max_skew_ns)
            node = self._addresses[key] = SimulatedNode(name, key, skew_ns)
            self.nodes[name if name not in self.nodes else key] = node
        life, incarnation = 1_700_000_000 * _S + self._clock(node), self._rng.getrandbits(64) or 1
        if old_identity:
            incarnation = node.cluster.membership.me.incarnation
        node.table = TagTable(name, life)
        node.cluster = Cluster(
            node.table, incarnation, rng=Random(self._rng.getrandbits(64)),
            now_ns=self._clock(node) + int(first_tick_s * _S),
            control=(node.address,), seeds=tuple(self.nodes[seed].address for seed in seeds), timing=self._timing,
        )  # fmt: skip
        node.running = True
        self._plan(node)
        return node

    def kill(self, name: str, *, silently: bool = False) -> None:
        """As SIGKILL does, or with `silently` as a power cut does: nobody's link is reset."""
        node = self.nodes[name]
        node.running = False
        for pipe in list(node.links.values()):
            if not silently:
                self._later(self._latency(), self._link_down, pipe.to, pipe.number)
        node.links.clear()

    def stop(self, name: str) -> None:
        """As SIGTERM does: it tells the others that it leaves."""
        self.tell(name, Leave())
        self.kill(name)

    def partition(self, *sides: Iterable[str]) -> None:
        """Cut the network; nodes not named are on the first side."""
        for node in self.nodes.values():
            node.side = 0
        for number, names in enumerate(sides):
            for name in names:
                self.nodes[name].side = number

    def heal(self) -> None:
        """Join the sides. Links that lost something while they were cut break now."""
        self.partition()
        for node in self.nodes.values():
            for number, pipe in list(node.links.items()):
                if pipe.broken:
                    self._later(self._latency(), self._link_down, node, number)
                    self._later(self._latency(), self._link_down, pipe.to, pipe.number)

    def change(self, name: str, write: Callable[[TagTable], list[Change]]) -> None:
        """The node's own rows change."""
        self.tell(name, LocalChanges(write(self.nodes[name].table)))

    def follow(self, name: str) -> None:
        """Begin to count the steps of what that node will change."""
        for node in self.nodes.values():
            node.depth = 0 if node.name == name else None

    def tell(self, name: str, event: Event) -> None:
        self._handle(self.nodes[name], event)

    # ------------------------------------------------------------------ time

    def run(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, condition: Callable[[], bool], limit_s: float, every_s: float = 0.0) -> bool:
        """Whether the condition came true within the limit; it is checked after every event, or every `every_s`."""
        end_ns = self.now_ns + int(limit_s * _S)
        check_ns = self.now_ns
        while self._queue and self._queue[0][0] <= end_ns:
            if self._queue[0][0] >= check_ns:
                if condition():
                    return True
                check_ns = self._queue[0][0] + int(every_s * _S)
            self.now_ns, _, call, arguments = heapq.heappop(self._queue)
            call(*arguments)
        self.now_ns = end_ns
        return condition()

    def running(self) -> list[SimulatedNode]:
        return [node for node in self.nodes.values() if node.running]

    def agree(self) -> bool:
        """Whether all running nodes see each other and hold the same rows."""
        nodes = self.running()
        return len({node.cluster.sums() for node in nodes}) == 1 and all(
            len(node.cluster.membership.roster) == len(nodes) for node in nodes
        )

    # ------------------------------------------------------------------ the links

    def _handle(self, node: SimulatedNode, event: Event) -> None:
        for action in node.cluster.handle(event, self._clock(node)):
            if isinstance(action, Send):
                self._send(node, action.link, action.message)
            elif isinstance(action, Connect):
                self._dial(node, action.address)
            elif isinstance(action, Close):
                self._close(node, action.link)
            else:
                node.seen.append(action)
        self._plan(node)

    def _plan(self, node: SimulatedNode) -> None:
        due_ns = node.cluster.due_ns()
        if due_ns is not None:
            due_ns = max(due_ns - node.skew_ns, self.now_ns)
            if node.due_ns is None or due_ns < node.due_ns:
                node.due_ns = due_ns
                self._later(due_ns - self.now_ns, self._tick, node, due_ns)

    def _tick(self, node: SimulatedNode, due_ns: int) -> None:
        if node.due_ns == due_ns:
            node.due_ns = None
            if node.running:
                self._handle(node, Tick())

    def _dial(self, node: SimulatedNode, address: str) -> None:
        other = self._addresses.get(address)
        if other is None or other.side != node.side:
            self._later(DIAL_TIMEOUT_NS, self._dialled, node, node.cluster, address, None)
        else:
            self._later(self._latency(), self._dialled, node, node.cluster, address, other)

    def _dialled(self, node: SimulatedNode, cluster: Cluster, address: str, other: SimulatedNode | None) -> None:
        if not node.running or node.cluster is not cluster:
            return
        if other is None or not other.running or other.side != node.side:
            self._handle(node, DialFailed(address, refused=other is not None and other.side == node.side))
            return
        self.link(node, other)

    def link(self, node: SimulatedNode, other: SimulatedNode) -> None:
        """The first called the other."""
        there, back = _Pipe(other, next(self._numbers)), _Pipe(node, next(self._numbers))
        there.back, back.back = back, there
        node.links[back.number], other.links[there.number] = there, back
        self._handle(node, LinkUp(back.number, other.address))
        self._handle(other, LinkUp(there.number, None))

    def _send(self, node: SimulatedNode, number: int, message: PeerMessage) -> None:
        pipe = node.links.get(number)
        frame = encode_frame(message)
        messages, size = self.sent.get(type(message), (0, 0))
        self.sent[type(message)] = (messages + 1, size + len(frame))
        node.largest_bytes = max(node.largest_bytes, len(frame))
        if pipe is None:
            return
        if pipe.to.side != node.side:
            pipe.broken = True
            return
        if self.loss and self._rng.random() < self.loss:
            return
        if self._through_wire:
            message = decode_untrusted(frame[LENGTH_BYTES:])
        for _ in range(2 if self.repeat and self._rng.random() < self.repeat else 1):
            at_ns = self.now_ns + self._latency()
            if not (self.reorder and self._rng.random() < self.reorder):
                at_ns = pipe.last_ns = max(at_ns, pipe.last_ns + 1)
            self._later(at_ns - self.now_ns, self._deliver, node, pipe, message)

    def _deliver(self, sender: SimulatedNode, pipe: _Pipe, message: PeerMessage) -> None:
        node = pipe.to
        if not node.running or pipe.number not in node.links:
            return
        if node.depth is None and sender.depth is not None and isinstance(message, TableDelta):
            node.depth = sender.depth + 1
        self._handle(node, Received(pipe.number, message))

    def _close(self, node: SimulatedNode, number: int) -> None:
        pipe = node.links.pop(number, None)
        if pipe is not None:
            self._later(max(self._latency(), pipe.last_ns - self.now_ns + 1), self._link_down, pipe.to, pipe.number)

    def _link_down(self, node: SimulatedNode, number: int) -> None:
        pipe = node.links.get(number)
        if pipe is None or not node.running:
            return
        if pipe.to.side != node.side:
            pipe.broken = True  # the notice of it does not get through either
            return
        del node.links[number]
        self._handle(node, LinkDown(number))

    def _latency(self) -> int:
        return self._rng.randint(*self._latency_ns)

    def _clock(self, node: SimulatedNode) -> int:
        return self.now_ns + node.skew_ns

    def _later(self, delay_ns: int, call: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._queue, (self.now_ns + delay_ns, next(self._order), call, arguments))
