"""Opening a channel, from the receiving end: one sequence, in the order in which it happens.

Invariants: a mirror is there before its sender sends, so nothing is lost while joining; whatever fails on the way,
nothing is left of the channel here.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TypeVar, cast

import msgspec

from ringcast import _core
from ringcast.control import service
from ringcast.control.descriptor import Descriptor
from ringcast.control.service import KNOWN_HEADS, ChannelOpened, Nothing, OpenChannel, Start, StartChannel
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.intakes.handing import HandedMirror, HandedReceiving, Handing
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.rings.registrations import Client
from ringcast.daemon.rings.ring import MirrorRing
from ringcast.daemon.stages.proxies import PREPARE_S
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.resolving import resolved
from ringcast.daemon.streams.state import Event, Life
from ringcast.daemon.streams.wanted import IncomingChannel, Stream, mirror_before
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import BrokenError, PublisherGone
from ringcast.transport import Channel, Receiving
from ringcast.transport.interface import GroupReceiving, InheritingReceiving, Mirror, MirrorBefore, ReceivingEnd

REQUEST_TIMEOUT_S = 2.0

_T = TypeVar("_T")


def patience_s(demand: Demand) -> float:
    """How long a channel may take to open; a stage may have to be started for it."""
    return REQUEST_TIMEOUT_S if demand.size is None else PREPARE_S


class Opening:
    """`host_of` knows where a node is, `clock_of` what its clock shows. `sealed`: nothing is taken in that is not."""

    def __init__(
        self, local: Local, mesh: Mesh, ends: ReceivingEnds, host_of: Callable[[str], Awaitable[str]],
        clock_of: Callable[[str], Awaitable[_core.TimeBase]], sealed: bool = False, handing: Handing | None = None,
    ) -> None:  # fmt: skip
        self._handing = handing
        self._local = local
        self._mesh = mesh
        self._ends = ends
        self._host_of = host_of
        self._clock_of = clock_of
        self._sealed = sealed
        self.keys: set[int] = set()
        """Of channels that are being opened."""

    async def open(
        self, stream: Stream, row: PublisherRow, via: str, start: Start, *, hold: bool
    ) -> tuple[IncomingChannel, list[Send]]:
        """A channel that flows, and what clients are to be told of its ring. With `hold` the ring overwrites nothing
        until reliable readers have a place in it. Raises TimeoutError, RingcastError, OSError."""
        demand, key, life = stream.demand, secrets.randbits(62) | 1, Life()
        receiving = self._end(demand, stream.incarnation)
        address, here = f":{receiving.port}", demand.at == f"node:{via}"
        with ExitStack() as undo:
            undo.callback(self._ends.release, receiving)
            undo.callback(life.on, Event.FAILED)
            self.keys.add(key)
            undo.callback(self.keys.discard, key)
            # 1. The sender says where the stream begins, and keeps that for a moment.
            request = OpenChannel(
                incarnation=stream.incarnation, every=demand.every, start=start, transport=demand.transport,
                size=demand.size, rate_hz=demand.rate_hz, here=here, key=key, address=address,
                reliable=demand.reliable, priority=demand.priority,
            )  # fmt: skip
            opened = await self._ask(via, service.OPEN, request, ChannelOpened, patience_s(demand))
            if self._sealed and (opened.seat.seal if opened.seat is not None else opened.seal) is None:
                raise BrokenError(f"node {via!r} does not seal its streams; run the same version of ringcast there")
            # 2. The mirror is made. Whatever comes for it from now on is kept.
            channel = _channel(key, stream, opened, await resolved(await self._host_of(via)))
            clock = await self._clock_of(via)
            before = self._before(stream, receiving)
            mirror = await _made(receiving, channel, clock, before)
            mirror.follow(clock)
            undo.callback(receiving.close_channel, key)
            ring = self._mirror_ring(stream, row, channel, mirror, receiving, opened.age_ns, before)
            undo.callback(ring.close)
            if hold:
                ring.keep(_core)
            life.on(Event.OPENED)
            # 3. The sender sends.
            begun = StartChannel(
                key=key, incarnation=stream.incarnation, first_seq=opened.first_seq, address=address,
                every=opened.every, transport=demand.transport, reliable=demand.reliable, size=demand.size,
                rate_hz=demand.rate_hz, here=here,
                direct=opened.seat is not None and not cast(GroupReceiving, receiving).hears(key),
                priority=demand.priority, heads=KNOWN_HEADS,
            )  # fmt: skip
            await self._ask(via, service.START, begun, Nothing)
            life.on(Event.STARTED)
            # 4. Subscribers who asked for such a stream are shown its ring.
            shown = self._local.sharing.add_mirror(ring, before)
            undo.pop_all()
            self.keys.discard(key)
        return IncomingChannel(
            key=key, via=via, transport=demand.transport, row=row, mirror=mirror, ring=ring,
            first_seq=opened.first_seq, life=life, receiving=receiving,
        ), shown  # fmt: skip

    def _end(self, demand: Demand, publisher: int) -> ReceivingEnd:
        if demand.reader is None or self._handing is None:
            return self._ends.end_for(demand.transport, demand.priority, publisher)
        own = self._handing.end(demand.reader)
        self._ends.add_own(demand.transport, own)
        return own

    def _before(self, stream: Stream, receiving: ReceivingEnd) -> MirrorRing | None:
        """The mirror whose place the stream's takes, and whose history goes on in it."""
        if not isinstance(receiving, HandedReceiving | InheritingReceiving):
            return None
        before = mirror_before(stream, self._local.rings)
        client = self._reader(stream.demand)
        if before is not None and client is not None and client.who is not None:
            before.shown_to.add(client.who)
        return before

    def _mirror_ring(
        self, stream: Stream, row: PublisherRow, channel: Channel, mirror: Mirror, receiving: ReceivingEnd,
        older_ns: int | None, before: MirrorRing | None,
    ) -> MirrorRing:  # fmt: skip
        tag = self._local.table.tag(row.info.tag)
        if tag is None:
            raise PublisherGone(row.info.incarnation, row.owner)
        monitor = _core.RingMonitor(
            mirror.ring_fd, mirror.bell_fd, depth=channel.depth, capacity_bytes=channel.capacity_bytes,
            incarnation=mirror.incarnation,
        )  # fmt: skip
        if isinstance(mirror, HandedMirror):
            fanout = mirror.take_fanout()
        else:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                receiving.attach_fanout(channel.key, theirs.fileno())
            fanout = Descriptor(ours.detach())
        fds = [Descriptor(os.dup(mirror.ring_fd)), Descriptor(os.dup(mirror.bell_fd)), fanout]
        row = msgspec.structs.replace(row, depth=channel.depth, capacity_bytes=channel.capacity_bytes)
        return MirrorRing(
            self._local.number(), row, tag.attributes, fds, monitor, mirror=mirror, every=channel.every,
            demand=stream.demand, older_ns=older_ns, trusted=self._is_trusted(stream.demand),
            first_seq=channel.first_seq if before is None else min(channel.first_seq, before.first_seq),
        )  # fmt: skip

    def _reader(self, demand: Demand) -> Client | None:
        """The client that receives it itself, while it is here."""
        return None if demand.reader is None else self._local.clients.get(demand.reader[0])

    def _is_trusted(self, demand: Demand) -> bool:
        client = self._reader(demand)
        return demand.reader is None or (client is not None and client.trusted)

    async def _ask(
        self, node: str, name: str, request: msgspec.Struct, kind: type[_T], timeout: float = REQUEST_TIMEOUT_S
    ) -> _T:
        answer = await self._mesh.request(node, name, service.encode(request), timeout)
        return service.decode_untrusted(answer, kind)


async def _made(receiving: ReceivingEnd, channel: Channel, clock: _core.TimeBase, held: MirrorRing | None) -> Mirror:
    """The channel's mirror. `held` stays until what it holds has been copied."""
    before = None
    if held is not None:
        memory = held.files[0].open()
        before = MirrorBefore(memory.fileno(), held.row.depth, held.row.capacity_bytes, held.ring)
    if isinstance(receiving, HandedReceiving):
        return await receiving.open_there(channel, clock, before)
    if before is not None and isinstance(receiving, InheritingReceiving):
        return await receiving.open_after(channel, before)
    return cast(Receiving, receiving).open(channel)


def _channel(key: int, stream: Stream, opened: ChannelOpened, sender: str) -> Channel:
    demand = stream.demand
    depth, capacity_bytes = opened.depth, opened.capacity_bytes
    if demand.depth:
        # A deeper mirror needs as many times the bytes; a shallower one must still hold the longest message.
        depth, capacity_bytes = demand.depth, capacity_bytes * max(1, -(-demand.depth // opened.depth))
    return Channel(
        key=key, incarnation=stream.incarnation, depth=depth, capacity_bytes=capacity_bytes,
        first_seq=opened.first_seq, every=opened.every, reliable=demand.reliable, transport=demand.transport,
        sender=sender, seat=opened.seat, seal=opened.seal, priority=demand.priority,
    )  # fmt: skip
