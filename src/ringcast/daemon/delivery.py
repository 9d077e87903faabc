"""The paper's delivery manager: streams of other nodes' publishers that come to this node, as mirror rings.

Which there should be follows from the table: for each way in which this node's subscribers want a tag, one channel from
each live publisher on another node. `follow` makes it so, whatever changed. Invariants: equal demands share one channel
and one mirror; a mirror is there before its sender is let go, so nothing is lost while joining; after a broken channel
the next one begins where the last one ended; a stream that moves, to another proxy or transport, is closed only when
what continues it flows, and a move that fails leaves it where it is.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import NamedTuple, Protocol, TypeVar, cast

import msgspec

from ringcast import _core
from ringcast.control import service
from ringcast.control.service import (
    ChannelOpened,
    CloseChannel,
    DirectChannel,
    Nothing,
    OpenChannel,
    RegroupChannel,
    RetuneChannel,
    RingTaken,
    Start,
    StartChannel,
)
from ringcast.daemon.derivation import oldest_seq
from ringcast.daemon.descriptor import Descriptor
from ringcast.daemon.effects import Send
from ringcast.daemon.fanout import FanOut
from ringcast.daemon.holdings import Asked, Demand, MirrorRing, Ring, Wish
from ringcast.daemon.local import Local
from ringcast.daemon.pacing import Paces
from ringcast.daemon.rows import PublisherRow
from ringcast.daemon.stages import PREPARE_S, Stages
from ringcast.errors import PublisherGone, RingcastError
from ringcast.place import node_of
from ringcast.tag import matches
from ringcast.transport import Channel, Receiving, find
from ringcast.transport.interface import FanOutLinks, GroupReceiving, GroupTransport, Mirror

logger = logging.getLogger("ringcast.daemon")

REQUEST_TIMEOUT_S = 2.0
RETRY_S = 0.5
ENDED_S = 0.1
DRAIN_S = 1.0
SETTLE_S = 0.001
_PLAIN, _RELIABLE = "udp", "tcp"

_T = TypeVar("_T")


def _patience_s(demand: Demand) -> float:
    return REQUEST_TIMEOUT_S if demand.size is None else PREPARE_S


def relay(transport: str, reliable: bool) -> Demand:
    """What a proxy on this node reads, to send on by that transport: everything, and no less surely. A stream of tcp is
    always reliable: it would lose what its pump is too late for, and nobody would ask for it again."""
    kind = find(transport)
    if kind.promises.reliable:
        return Demand(at="", transport=transport, reliable=reliable or not isinstance(kind, GroupTransport))
    return Demand(at="")


def _geometry(demand: Demand, opened: ChannelOpened) -> tuple[int, int]:
    """The mirror's depth and capacity. A deeper one than the publisher's needs as many times the bytes; a shallower one
    must still hold the longest message."""
    if not demand.depth:
        return opened.depth, opened.capacity_bytes
    times = -(-demand.depth // opened.depth)
    return demand.depth, opened.capacity_bytes * max(1, times)


class Mesh(Protocol):
    def node(self, name: str) -> object | None: ...
    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes: ...


class Resumption(NamedTuple):
    """Where a stream that broke goes on: where its mirror ended, once that has ended."""

    tag: str
    end: asyncio.Task[int]


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
    broken: bool = False
    """Nothing comes any more; kept for what its mirror holds."""
    leaves_at: float | None = None
    """When it is closed, its publisher being gone, though it has not come to the end."""


class RingSource:
    """A ring of this node as a sending end reads it."""

    def __init__(self, ring: Ring, flush: Callable[[Ring], None], paces: Paces) -> None:
        self._ring = ring
        self._flush = flush
        self._paces = paces
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
        return oldest_seq(self._ring)

    @property
    def fresh_seq(self) -> int:
        return self._ring.fresh_seq

    def factor(self, every: int, rate_hz: float) -> int:
        if self._ring.size is not None:
            return self._ring.every
        return self._paces.every(self._ring, rate_hz) if rate_hz else every

    def changed_factor(self, every: int, rate_hz: float) -> bool:
        return rate_hz > 0 and self._paces.follow(self._ring, rate_hz) != every

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
    """`deliver` hands what clients are to be told to the shell; `on_linked` is given a fan-out that may answer;
    `host_of` knows where a node is."""

    def __init__(
        self, local: Local, mesh: Mesh, host: str, deliver: Callable[[list[Send]], None],
        on_linked: Callable[[FanOut], None], stages: Stages, host_of: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._host_of = host_of
        self._local = local
        self._stages = stages
        self._mesh = mesh
        self._host = host
        self._deliver = deliver
        self._on_linked = on_linked
        self._receiving: dict[str, Receiving] = {}
        self.channels: dict[Stream, Incoming] = {}
        self._opening: dict[Stream, asyncio.Task[None]] = {}
        self._resume: dict[Stream, Resumption] = {}
        self._complained: set[Stream] = set()
        self._relayed: Counter[Stream] = Counter()
        self._kept: Counter[tuple[str, Demand]] = Counter()
        self._leaving = False
        self._retry: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._farewells: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ what there should be

    def wanted(self) -> dict[Stream, PublisherRow]:
        """Every stream that this node's subscribers and proxies ask for, with its publisher's row."""
        streams: dict[Stream, PublisherRow] = {}
        for row in self._remote_publishers():
            for demand in self._demands(row.info.tag):
                streams[Stream(row.info.incarnation, demand)] = row
        for tag, demand in self._kept:
            for row in self._local.table.publishers(tag):
                if row.alive and row.owner != self._local.table.node:
                    streams[Stream(row.info.incarnation, demand)] = row
                elif row.alive and row.depth < demand.depth:  # by way of a socket to ourselves, which must lose nothing
                    streams[Stream(row.info.incarnation, demand._replace(transport="tcp"))] = row
        rows = {row.info.incarnation: row for row in self._remote_publishers()} if self._relayed else {}
        return streams | {stream: rows[stream.incarnation] for stream in self._relayed if stream.incarnation in rows}

    def follow(self) -> None:
        """Open what is missing and close what nobody wants."""
        streams = self.wanted()
        for stream in list(streams):
            self._retune(stream, streams)
        self._leaving = False
        alive = {row.info.incarnation for row in self._remote_publishers()}
        for stream in [stream for stream in self.channels if stream not in streams]:
            if self.channels[stream].ring.readers and stream.incarnation in alive:
                self._leaving = True  # to where its readers have not been shown the way yet
            elif stream.incarnation not in alive and self._drains(stream):
                self._leaving = True  # with its publisher, when the last message is here
            elif not self._is_kept(stream):
                # Its publisher's row may be gone only because its node is away.
                self._remember(stream)
                self._close(stream)
        for stream, (tag, _) in list(self._resume.items()):
            if stream.demand not in self._demands(tag) and stream not in self._relayed:
                del self._resume[stream]
        for stream, row in streams.items():
            if stream in self._opening:
                continue
            incoming = self.channels.get(stream)
            if incoming is None or incoming.broken or incoming.via != self._proxy(stream.demand, row):
                start = "earliest" if stream.demand.depth else self._continuing(stream.incarnation, "earliest")
                self._open_soon(stream, row, start)
        self._stages.follow()

    def _drains(self, stream: Stream) -> bool:
        """Whether more is to come of a publisher that left."""
        incoming = self.channels[stream]
        rows = self._local.table.publishers(incoming.row.info.tag)
        row = next((row for row in rows if row.info.incarnation == stream.incarnation), None)
        if row is None or row.alive or incoming.broken:
            return False
        if stream in self._relayed:  # to be released by those who have it from here
            return True
        due = -(-incoming.mirror.next_seq // incoming.ring.every) * incoming.ring.every
        if due >= row.end or not incoming.ring.readers:
            return False
        if incoming.leaves_at is None:
            incoming.leaves_at = asyncio.get_running_loop().time() + DRAIN_S
        return stream.demand.reliable or asyncio.get_running_loop().time() < incoming.leaves_at

    def _retune(self, wanted: Stream, streams: dict[Stream, PublisherRow]) -> None:
        """Of a stream that is to be carried with other parameters, keep the channel and tell both its ends."""
        if wanted in self.channels or wanted in self._opening:
            return
        for stream, incoming in self.channels.items():
            if stream not in streams and not incoming.broken and _differ_in_parameters(stream, wanted):
                break
        else:
            return
        transport = wanted.demand.transport
        self._group_end(transport).retune(incoming.key, transport)
        del self.channels[stream]
        self.channels[wanted] = incoming
        incoming.transport = transport
        incoming.ring.demand = wanted.demand
        self._later(self._tell_retuned(incoming))

    async def _tell_retuned(self, incoming: Incoming) -> None:
        try:
            request = RetuneChannel(key=incoming.key, transport=incoming.transport)
            await self._ask(incoming.via, service.RETUNE, request, Nothing)
        except (TimeoutError, RingcastError, OSError) as exc:
            logger.warning("node %s goes on with the parameters it had: %s", incoming.via, exc)

    def tell_taken(self, row: PublisherRow) -> None:
        """Its node need not keep anything for those here any longer."""
        self._later(self._tell_taken(row))

    async def _tell_taken(self, row: PublisherRow) -> None:
        try:
            await self._ask(row.owner, service.TAKEN, RingTaken(incarnation=row.info.incarnation), Nothing)
        except (TimeoutError, RingcastError, OSError) as exc:
            logger.warning("node %s may hold up %s for subscribers here: %s", row.owner, row.info, exc)

    async def _ask_for_direct(self, incoming: Incoming) -> None:
        try:
            await self._ask(incoming.via, service.DIRECT, DirectChannel(key=incoming.key), Nothing)
        except (TimeoutError, RingcastError, OSError) as exc:
            logger.warning("node %s cannot be asked to send without multicast: %s", incoming.via, exc)

    def regroup(self, request: RegroupChannel) -> None:
        """Somebody else shares a stream with a channel here, or left."""
        for incoming in self.channels.values():
            if incoming.key == request.key:
                self._group_end(incoming.transport).regroup(request.key, request.peers)

    def _continuing(self, incarnation: int, otherwise: Start) -> Start:
        """Where a stream begins that some other one comes before, if there is one."""
        known = [known.mirror.next_seq for stream, known in self.channels.items() if stream.incarnation == incarnation]
        behind = self._local.sharing.continuing(incarnation)  # a stage here may not have come as far as what it reads
        return min([*known, *([] if behind is None else [behind])], default=otherwise)

    async def prepare(self, pattern: str, asked: Asked, start: Start) -> None:
        """Open the channels that a subscription is going to need, so that nothing sent after it is missed. Those that
        cannot be opened now are tried again later."""
        tasks = []
        patience_s = 0.0
        for row in self._remote_publishers():
            demand = self._local.sharing.demand(asked, row.info.tag)
            stream = Stream(row.info.incarnation, demand)
            if matches(pattern, row.info.tag) and stream not in self.channels and not self._made_here(demand):
                patience_s = max(patience_s, _patience_s(demand))
                tasks.append(self._opening.get(stream) or self._open_soon(stream, row, start))
        if tasks:
            await asyncio.wait(tasks, timeout=patience_s)

    async def keep(self, tag: str, demand: Demand) -> None:
        """Hold mirrors of a tag's publishers, of the demand's own depth, whoever subscribes."""
        self._kept[tag, demand] += 1
        await self.settled(tag)

    def let_go(self, tag: str, demand: Demand) -> None:
        self._kept[tag, demand] -= 1
        if not self._kept[tag, demand]:
            del self._kept[tag, demand]
            self.follow()

    def _is_kept(self, stream: Stream) -> bool:
        """Of a publisher that left, what is held goes on being held."""
        tag, wanted = self.channels[stream].row.info.tag, stream.demand
        return any((tag, wanted.every, wanted.depth) == (t, kept.every, kept.depth) for t, kept in self._kept)

    async def settled(self, pattern: str) -> None:
        """Returns when streams that match come as they should, or after a moment."""
        self.follow()
        tasks = [task for stream, task in self._opening.items() if self._concerns(stream, pattern)]
        if tasks:
            await asyncio.wait(tasks, timeout=REQUEST_TIMEOUT_S)

    def _concerns(self, stream: Stream, pattern: str) -> bool:
        return any(
            row.info.incarnation == stream.incarnation and matches(pattern, row.info.tag)
            for row in self._local.table.all_publishers()
        )

    # ------------------------------------------------------------------ streams of this node, for others

    async def source(
        self, incarnation: int, transport: str, reliable: bool, wish: Wish | None = None, start: Start = "new"
    ) -> RingSource:
        """See `Sources`. A publisher of this node, a mirror that is held for the sake of a proxy here, or what a stage
        here makes of one of the two."""
        if wish is not None:
            return RingSource(await self._stages.hold(wish, start), self._flush, self._local.sharing.paces)
        return RingSource(
            await self._whole(incarnation, transport, reliable, start), self._flush, self._local.sharing.paces
        )

    def release(self, incarnation: int, transport: str, reliable: bool, wish: Wish | None = None) -> None:
        if wish is not None:
            self._stages.release(wish)
        else:
            self._release_whole(incarnation, transport, reliable)

    async def base(self, wish: Wish, start: Start) -> Ring:
        """See `Bases`."""
        return await self._whole(wish.incarnation, _RELIABLE if wish.reliable else _PLAIN, wish.reliable, start)

    def release_base(self, wish: Wish) -> None:
        self._release_whole(wish.incarnation, _RELIABLE if wish.reliable else _PLAIN, wish.reliable)

    async def _whole(self, incarnation: int, transport: str, reliable: bool, start: Start) -> Ring:
        ring = self._local.rings.of_incarnation(incarnation)
        stream = Stream(incarnation, relay(transport, reliable))
        self._relayed[stream] += 1
        if ring is None:
            try:
                ring = (await self._relay(stream, start)).ring
            except BaseException:
                self._release_whole(incarnation, transport, reliable)
                raise
        return ring

    def _release_whole(self, incarnation: int, transport: str, reliable: bool) -> None:
        stream = Stream(incarnation, relay(transport, reliable))
        self._relayed[stream] -= 1
        if not self._relayed[stream]:
            del self._relayed[stream]
            self.follow()

    async def _relay(self, stream: Stream, start: Start) -> Incoming:
        if stream not in self.channels:
            row = next((row for row in self._remote_publishers() if row.info.incarnation == stream.incarnation), None)
            if row is None:
                raise PublisherGone(stream.incarnation, self._local.table.node)
            start = self._continuing(stream.incarnation, start)
            await asyncio.wait([self._opening.get(stream) or self._open_soon(stream, row, start)])
        if stream not in self.channels:
            raise PublisherGone(stream.incarnation, self._local.table.node)
        return self.channels[stream]

    def _demands(self, tag: str) -> set[Demand]:
        return {demand for demand in self._local.sharing.demands(tag) if not self._made_here(demand)}

    def _made_here(self, demand: Demand) -> bool:
        """A stage on this node scales for it, and reads the whole stream."""
        return demand.size is not None and demand.at == f"node:{self._local.table.node}"

    def _remote_publishers(self) -> list[PublisherRow]:
        table = self._local.table
        return [row for row in table.all_publishers() if row.alive and row.owner != table.node]

    def _flush(self, ring: Ring) -> None:
        if ring.fanout.closed:
            return
        self._on_linked(ring.fanout)
        self._deliver(self._local.sharing.announce(ring))

    # ------------------------------------------------------------------ opening and closing

    def _open_soon(self, stream: Stream, row: PublisherRow, start: Start) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._open(stream, row, start))
        self._opening[stream] = task
        task.add_done_callback(lambda _: self._opening.pop(stream, None))
        return task

    async def _open(self, stream: Stream, row: PublisherRow, start: Start) -> None:
        demand = stream.demand
        via = self._proxy(demand, row)
        key = secrets.randbits(62) | 1
        try:
            begin: Start = await self._resume[stream].end if stream in self._resume else start
            receiving = self._end(demand.transport)
            opened = await self._ask(
                via, service.OPEN,
                OpenChannel(
                    incarnation=stream.incarnation, every=demand.every, start=begin, transport=demand.transport,
                    size=demand.size, rate_hz=demand.rate_hz, here=demand.at == f"node:{via}",
                    key=key, address=f":{receiving.port}", reliable=demand.reliable,
                ),
                ChannelOpened, _patience_s(demand),
            )  # fmt: skip
            depth, capacity_bytes = _geometry(demand, opened)
            channel = Channel(
                key=key, incarnation=stream.incarnation, depth=depth, capacity_bytes=capacity_bytes,
                first_seq=opened.first_seq, every=opened.every, reliable=demand.reliable, transport=demand.transport,
                sender=self._host_of(via), seat=opened.seat,
            )  # fmt: skip
            mirror = receiving.open(channel)
            try:
                ring = self._mirror_ring(stream, row, channel, mirror, receiving)
                if demand.reliable and demand in self._demands(row.info.tag):
                    ring.keep(_core)
                await self._ask(
                    via, service.START,
                    StartChannel(
                        key=key, incarnation=stream.incarnation, first_seq=opened.first_seq,
                        address=f":{receiving.port}", every=opened.every, transport=demand.transport,
                        reliable=demand.reliable, size=demand.size, rate_hz=demand.rate_hz,
                        here=demand.at == f"node:{via}",
                        direct=opened.seat is not None and not self._hears(demand, key),
                    ),
                    Nothing,
                )  # fmt: skip
                shown = self._local.sharing.add_mirror(ring)
            except BaseException:
                ring.let_go()
                receiving.close_channel(key)
                raise
        except (TimeoutError, RingcastError, OSError) as exc:
            if stream not in self._complained:
                self._complained.add(stream)
                logger.warning("no channel from %s on %s yet: %s", row.info, row.info.tag, exc)
            self._try_again()
            return
        self._complained.discard(stream)
        self._resume.pop(stream, None)
        before = self.channels.pop(stream, None)
        self.channels[stream] = Incoming(
            key=key, via=via, transport=demand.transport, row=row, mirror=mirror, ring=ring,
            first_seq=opened.first_seq,
        )  # fmt: skip
        self._deliver(shown)
        if before is not None:
            self._end_channel(before)
        # Who wanted it may have left while it was opened, and so may its publisher.
        asyncio.get_running_loop().call_soon(self.follow)
        if self._watching is None:
            self._watch()

    def _proxy(self, demand: Demand, row: PublisherRow) -> str:
        """The node to have it from. When the one asked for is away, the publisher's scales the same way."""
        asked = node_of(demand.at)
        return asked if asked and self._mesh.node(asked) is not None else row.owner

    def _remember(self, stream: Stream) -> None:
        incoming = self.channels[stream]
        end = asyncio.get_running_loop().create_task(_end_of(incoming.mirror))
        self._resume[stream] = Resumption(incoming.row.info.tag, end)

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
        row = msgspec.structs.replace(row, depth=channel.depth, capacity_bytes=channel.capacity_bytes)
        return MirrorRing(
            self._local.number(), row, tag.attributes, fds, monitor, mirror=mirror, every=channel.every,
            demand=stream.demand,
        )  # fmt: skip

    def _close(self, stream: Stream, *, tell: bool = True) -> None:
        self._end_channel(self.channels.pop(stream), tell=tell)

    def _end_channel(self, incoming: Incoming, *, tell: bool = True) -> None:
        self._end(incoming.transport).close_channel(incoming.key)
        if incoming.ring.alive:  # or it went with its tag, which somebody here destroyed
            self._deliver(self._local.sharing.drop_mirror(incoming.ring))
        if tell:
            self._later(self._farewell(incoming))

    def _later(self, word: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(word)
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _farewell(self, incoming: Incoming) -> None:
        try:
            await self._ask(incoming.via, service.CLOSE, CloseChannel(key=incoming.key), Nothing)
        except (TimeoutError, RingcastError, OSError):
            pass  # whoever is gone has closed it already

    def lost(self, stream: Stream, *, tell: bool = False) -> None:
        """Its sender is gone, or whom that has it from; go on where it ended, when there is a way again."""
        if stream in self.channels and self._is_kept(stream):
            self.channels[stream].broken = True
            self._try_again()
        elif stream in self.channels:
            self._remember(stream)
            self._close(stream, tell=tell)
            self._try_again()

    def again(self, node: str, key: int) -> None:
        """The sender closed the channel and wants to be asked again."""
        for stream, incoming in list(self.channels.items()):
            if incoming.key == key and incoming.via == node:
                self._remember(stream)
                self._close(stream, tell=False)
                self.follow()

    def node_gone(self, node: str) -> None:
        for stream, incoming in list(self.channels.items()):
            if node in (incoming.via, incoming.row.owner):
                self.lost(stream, tell=incoming.via != node)

    def close(self) -> None:
        """End all channels that come here, without a word to the others: they see the node go."""
        for timer in (self._retry, self._watching):
            if timer is not None:
                timer.cancel()
        for task in [*self._opening.values(), *self._farewells]:
            task.cancel()
        for resumption in self._resume.values():
            resumption.end.cancel()
        for receiving in self._receiving.values():
            receiving.close()

    def dropped(self) -> dict[str, dict[str, int]]:
        """{transport: {reason: how much came that nobody asked for}}"""
        found = {}
        for name, receiving in self._receiving.items():
            found[name] = {reason: count for reason, count in receiving.counters().items() if reason != "datagrams"}
        return found

    def _watch(self) -> None:
        """Some transports notice that a sender is gone before the mesh does, or that multicast ceased to reach us."""
        grouped = [name for name in {i.transport for i in self.channels.values()} if _is_grouped(name)]
        deaf = {key for name in grouped for key in self._group_end(name).take_deaf()}
        for incoming in [incoming for incoming in self.channels.values() if incoming.key in deaf]:
            self._later(self._ask_for_direct(incoming))
        for receiving in self._receiving.values():
            ended = set(receiving.ended())
            for stream in [stream for stream, incoming in self.channels.items() if incoming.key in ended]:
                self.lost(stream)
        if self._leaving:
            self.follow()
        self._watching = asyncio.get_running_loop().call_later(ENDED_S, self._watch) if self.channels else None

    def _try_again(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._retry = None
        self.follow()

    async def _ask(
        self, node: str, name: str, request: msgspec.Struct, kind: type[_T], timeout: float = REQUEST_TIMEOUT_S
    ) -> _T:
        answer = await self._mesh.request(node, name, service.encode(request), timeout)
        return service.decode_untrusted(answer, kind)

    def _end(self, transport: str) -> Receiving:
        kind = find(transport)
        name = kind.end if isinstance(kind, GroupTransport) else transport
        if name not in self._receiving:
            self._receiving[name] = kind.receive(self._host)
        return self._receiving[name]

    def _group_end(self, transport: str) -> GroupReceiving:
        return cast(GroupReceiving, self._end(transport))

    def _hears(self, demand: Demand, key: int) -> bool:
        return self._group_end(demand.transport).hears(key)


async def _end_of(mirror: Mirror) -> int:
    """The number after its last. A message that comes while its channel is being closed is in it or is not; asking
    earlier would leave that open, and the message might come again with the next channel."""
    while not mirror.closed:
        await asyncio.sleep(SETTLE_S)
    return mirror.next_seq


def _is_grouped(transport: str) -> bool:
    return isinstance(find(transport), GroupTransport)


def _differ_in_parameters(one: Stream, other: Stream) -> bool:
    """Whether both have the same stages, and nothing else is different."""
    if one.incarnation != other.incarnation or one.demand != other.demand._replace(transport=one.demand.transport):
        return False
    old, new = find(one.demand.transport), find(other.demand.transport)
    return isinstance(old, GroupTransport) and isinstance(new, GroupTransport) and old.shape == new.shape
