"""The paper's delivery manager: streams of other nodes' publishers that come to this node, as mirror rings.

Which there should be follows from the table: for each way in which this node's subscribers want a tag, one channel from
each live publisher on another node. `follow` makes it so, whatever changed. Invariants: equal demands share one channel
and one mirror; a mirror is there before its sender is let go, so nothing is lost while joining; after a broken channel
the next one begins where the last one ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from ringcast import _core
from ringcast.control import service
from ringcast.control.service import ChannelOpened, CloseChannel, Nothing, OpenChannel, Start, StartChannel
from ringcast.daemon.descriptor import Descriptor
from ringcast.daemon.effects import Send
from ringcast.daemon.holdings import Demand, MirrorRing, Ring
from ringcast.daemon.local import Local
from ringcast.daemon.rows import PublisherRow
from ringcast.errors import PublisherGone, RingcastError
from ringcast.tag import matches
from ringcast.transport import Channel, Receiving, find
from ringcast.transport.interface import FanOutLinks, Mirror

logger = logging.getLogger("ringcast.daemon")

REQUEST_TIMEOUT_S = 2.0
RETRY_S = 0.5
ENDED_S = 0.1

_T = TypeVar("_T")

RELAY = Demand()
"""What a proxy on this node reads: everything."""


class Mesh(Protocol):
    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes: ...


class Stream(NamedTuple):
    """What is wanted: one publisher's messages in one way."""

    incarnation: int
    demand: Demand


class Incoming(msgspec.Struct):
    """A channel that is open."""

    key: int
    via: str
    transport: str
    row: PublisherRow
    mirror: Mirror
    ring: MirrorRing
    first_seq: int


class RingSource:
    """A ring of this node as a sending end reads it."""

    def __init__(self, ring: Ring, flush: Callable[[Ring], None]) -> None:
        self._ring = ring
        self._flush = flush
        self.ring_fd = ring.fds[0].fileno()
        self.bell_fd = ring.fds[1].fileno()
        self.ring = ring.ring
        self.depth = ring.row.depth
        self.capacity_bytes = ring.row.capacity_bytes

    @property
    def next_seq(self) -> int:
        return self._ring.next_seq

    @property
    def oldest_seq(self) -> int:
        """The oldest number held, or the next one when nothing is."""
        history = _core.RingHistory()
        history.attach(self.ring_fd, depth=self.depth, capacity_bytes=self.capacity_bytes, incarnation=self.ring)
        oldest, newest = history.bounds()
        return oldest if self.next_seq and oldest <= newest else self.next_seq

    @property
    def links(self) -> FanOutLinks:
        return self

    def add_link(self, number: int, fd: int, *, key: int, every: int, chunk: int, first_seq: int) -> None:
        self._ring.fanout.add_link(number, fd, key=key, every=every, chunk=chunk, first_seq=first_seq)
        self._flush(self._ring)

    def remove_link(self, number: int) -> None:
        self._ring.fanout.remove_link(number)
        self._flush(self._ring)


class Delivery:
    """`deliver` hands what clients are to be told to the shell."""

    def __init__(self, local: Local, mesh: Mesh, host: str, deliver: Callable[[list[Send]], None]) -> None:
        self._local = local
        self._mesh = mesh
        self._host = host
        self._deliver = deliver
        self._receiving: dict[str, Receiving] = {}
        self.channels: dict[Stream, Incoming] = {}
        self._opening: dict[Stream, asyncio.Task[None]] = {}
        self._resume: dict[Stream, int] = {}
        self._relayed: dict[int, int] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._farewells: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ what there should be

    def wanted(self) -> dict[Stream, PublisherRow]:
        """Every stream that this node's subscribers and proxies ask for, with its publisher's row."""
        streams: dict[Stream, PublisherRow] = {}
        for row in self._remote_publishers():
            for demand in self._local.demands(row.info.tag):
                streams[Stream(row.info.incarnation, demand)] = row
            if self._relayed.get(row.info.incarnation):
                streams[Stream(row.info.incarnation, RELAY)] = row
        return streams

    def follow(self) -> None:
        """Open what is missing and close what nobody wants."""
        streams = self.wanted()
        for stream in [stream for stream in self.channels if stream not in streams]:
            self._close(stream)
        for stream, row in streams.items():
            if stream not in self.channels and stream not in self._opening:
                self._open_soon(stream, row, "earliest")

    async def prepare(self, pattern: str, demand: Demand, start: Start) -> None:
        """Open the channels that a subscription is going to need, so that nothing sent after it is missed. Those that
        cannot be opened now are tried again later."""
        tasks = []
        for row in self._remote_publishers():
            stream = Stream(row.info.incarnation, demand)
            if matches(pattern, row.info.tag) and stream not in self.channels:
                tasks.append(self._opening.get(stream) or self._open_soon(stream, row, start))
        if tasks:
            await asyncio.wait(tasks, timeout=REQUEST_TIMEOUT_S)

    # ------------------------------------------------------------------ streams of this node, for others

    async def source(self, incarnation: int) -> RingSource:
        """See `Sources`. A publisher of this node, or a mirror that is held for the sake of a proxy here."""
        self._relayed[incarnation] = self._relayed.get(incarnation, 0) + 1
        ring = self._local.rings.of_incarnation(incarnation)
        if ring is None:
            try:
                ring = (await self._relay(incarnation)).ring
            except BaseException:
                self.release(incarnation)
                raise
        return RingSource(ring, self._flush)

    def release(self, incarnation: int) -> None:
        self._relayed[incarnation] -= 1
        if not self._relayed[incarnation]:
            del self._relayed[incarnation]
            self.follow()

    async def _relay(self, incarnation: int) -> Incoming:
        stream = Stream(incarnation, RELAY)
        if stream not in self.channels:
            row = next((row for row in self._remote_publishers() if row.info.incarnation == incarnation), None)
            if row is None:
                raise PublisherGone(incarnation, self._local.table.node)
            await asyncio.wait([self._opening.get(stream) or self._open_soon(stream, row, "new")])
        if stream not in self.channels:
            raise PublisherGone(incarnation, self._local.table.node)
        return self.channels[stream]

    def _remote_publishers(self) -> list[PublisherRow]:
        table = self._local.table
        return [row for row in table.all_publishers() if row.alive and row.owner != table.node]

    def _flush(self, ring: Ring) -> None:
        self._deliver(self._local.announce(ring))

    # ------------------------------------------------------------------ opening and closing

    def _open_soon(self, stream: Stream, row: PublisherRow, start: Start) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._open(stream, row, start))
        self._opening[stream] = task
        task.add_done_callback(lambda _: self._opening.pop(stream, None))
        return task

    async def _open(self, stream: Stream, row: PublisherRow, start: Start) -> None:
        demand = stream.demand
        via = demand.at.removeprefix("node:") if demand.at.startswith("node:") else row.owner
        key = secrets.randbits(62) | 1
        begin: Start = self._resume.get(stream, start)
        try:
            receiving = self._end(demand.transport)
            opened = await self._ask(
                via, service.OPEN,
                OpenChannel(
                    incarnation=stream.incarnation, every=demand.every, start=begin, transport=demand.transport
                ),
                ChannelOpened,
            )  # fmt: skip
            channel = Channel(
                key=key, incarnation=stream.incarnation, depth=opened.depth, capacity_bytes=opened.capacity_bytes,
                first_seq=opened.first_seq, every=demand.every, reliable=demand.reliable,
            )  # fmt: skip
            mirror = receiving.open(channel)
            try:
                ring = self._mirror_ring(stream, row, channel, mirror, receiving)
                await self._ask(
                    via, service.START,
                    StartChannel(
                        key=key, incarnation=stream.incarnation, first_seq=opened.first_seq,
                        address=f":{receiving.port}", every=demand.every, transport=demand.transport,
                        reliable=demand.reliable,
                    ),
                    Nothing,
                )  # fmt: skip
            except BaseException:
                receiving.close_channel(key)
                raise
        except (TimeoutError, RingcastError, OSError) as exc:
            logger.warning("no channel from %s on %s: %s", row.info, row.info.tag, exc)
            self._try_again()
            return
        self.channels[stream] = Incoming(
            key=key, via=via, transport=demand.transport, row=row, mirror=mirror, ring=ring,
            first_seq=opened.first_seq,
        )  # fmt: skip
        self._deliver(self._local.add_mirror(ring))
        if self._watching is None:
            self._watch()

    def _mirror_ring(
        self, stream: Stream, row: PublisherRow, channel: Channel, mirror: Mirror, receiving: Receiving
    ) -> MirrorRing:
        tag = self._local.table.tag(row.info.tag)
        if tag is None:
            raise PublisherGone(row.info.incarnation, row.owner)
        monitor = _core.RingMonitor(
            mirror.ring_fd, mirror.bell_fd, depth=channel.depth, capacity_bytes=channel.capacity_bytes,
            incarnation=mirror.incarnation,
        )  # fmt: skip
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            receiving.attach_fanout(channel.key, theirs.fileno())
        fds = [Descriptor(os.dup(mirror.ring_fd)), Descriptor(os.dup(mirror.bell_fd)), Descriptor(ours.detach())]
        return MirrorRing(
            self._local.number(), row, tag.attributes, fds, monitor, mirror=mirror, every=channel.every,
            demand=stream.demand,
        )  # fmt: skip

    def _close(self, stream: Stream, *, tell: bool = True) -> None:
        incoming = self.channels.pop(stream)
        self._receiving[incoming.transport].close_channel(incoming.key)
        self._deliver(self._local.drop_mirror(incoming.ring))
        if tell:
            task = asyncio.get_running_loop().create_task(self._farewell(incoming))
            self._farewells.add(task)
            task.add_done_callback(self._farewells.discard)

    async def _farewell(self, incoming: Incoming) -> None:
        try:
            await self._ask(incoming.via, service.CLOSE, CloseChannel(key=incoming.key), Nothing)
        except (TimeoutError, RingcastError, OSError):
            pass  # whoever is gone has closed it already

    def lost(self, stream: Stream) -> None:
        """Its sender is gone; go on where it ended, when there is a way again."""
        incoming = self.channels.get(stream)
        if incoming is not None:
            self._resume[stream] = incoming.mirror.next_seq
            self._close(stream, tell=False)
            self._try_again()

    def node_gone(self, node: str) -> None:
        for stream, incoming in list(self.channels.items()):
            if node in (incoming.via, incoming.row.owner):
                self.lost(stream)

    def close(self) -> None:
        """End all channels that come here, without a word to the others: they see the node go."""
        for timer in (self._retry, self._watching):
            if timer is not None:
                timer.cancel()
        for task in [*self._opening.values(), *self._farewells]:
            task.cancel()
        for receiving in self._receiving.values():
            receiving.close()

    def counters(self) -> dict[str, dict[str, int]]:
        """Of the receiving ends: what came that nobody asked for."""
        return {name: receiving.counters() for name, receiving in self._receiving.items()}

    def _watch(self) -> None:
        """Some transports notice that a sender is gone before the mesh does."""
        for receiving in self._receiving.values():
            ended = set(receiving.ended())
            for stream in [stream for stream, incoming in self.channels.items() if incoming.key in ended]:
                self.lost(stream)
        self._watching = asyncio.get_running_loop().call_later(ENDED_S, self._watch) if self.channels else None

    def _try_again(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._retry = None
        self.follow()

    async def _ask(self, node: str, name: str, request: msgspec.Struct, kind: type[_T]) -> _T:
        answer = await self._mesh.request(node, name, service.encode(request), REQUEST_TIMEOUT_S)
        return service.decode_untrusted(answer, kind)

    def _end(self, transport: str) -> Receiving:
        if transport not in self._receiving:
            self._receiving[transport] = find(transport).receive(self._host)
        return self._receiving[transport]
