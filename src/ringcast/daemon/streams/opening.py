"""What a receiving node says to those it has its streams from: the requests of `ringcast.control.service`.

Invariants: a mirror is there before its sender is let go, so nothing is lost while joining; what is only said, and not
asked, is said once and in the background, and its failing costs nobody a stream.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from ringcast import _core
from ringcast.control import service
from ringcast.control.descriptor import Descriptor
from ringcast.control.service import (
    ChannelOpened,
    CloseChannel,
    DirectChannel,
    Nothing,
    OpenChannel,
    RetuneChannel,
    RingTaken,
    Start,
    StartChannel,
)
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.rings.ring import MirrorRing
from ringcast.daemon.stages.proxies import PREPARE_S
from ringcast.daemon.streams.ends import ReceivingEnds
from ringcast.daemon.streams.resolving import resolved
from ringcast.daemon.streams.wanted import IncomingChannel, Stream
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import PublisherGone, RingcastError
from ringcast.transport import Channel, Receiving
from ringcast.transport.interface import Mirror

logger = logging.getLogger("ringcast.daemon")

REQUEST_TIMEOUT_S = 2.0

_T = TypeVar("_T")


def patience_s(demand: Demand) -> float:
    """How long a channel may take to open; a stage may have to be begun for it."""
    return REQUEST_TIMEOUT_S if demand.size is None else PREPARE_S


class Senders:
    """`host_of` knows where a node is."""

    def __init__(
        self, local: Local, mesh: Mesh, ends: ReceivingEnds, host_of: Callable[[str], Awaitable[str]],
        background: Background,
    ) -> None:  # fmt: skip
        self._local = local
        self._mesh = mesh
        self._ends = ends
        self._host_of = host_of
        self._background = background

    async def open(self, stream: Stream, row: PublisherRow, via: str, start: Start, *, hold: bool) -> IncomingChannel:
        """A channel that flows, into a mirror that nobody has been shown yet; with `hold`, one that overwrites nothing.

        Raises TimeoutError, RingcastError, OSError.
        """
        demand, key = stream.demand, secrets.randbits(62) | 1
        receiving = self._ends.end(demand.transport)
        address, here = f":{receiving.port}", demand.at == f"node:{via}"
        asked = OpenChannel(
            incarnation=stream.incarnation, every=demand.every, start=start, transport=demand.transport,
            size=demand.size, rate_hz=demand.rate_hz, here=here, key=key, address=address, reliable=demand.reliable,
        )  # fmt: skip
        opened = await self._ask(via, service.OPEN, asked, ChannelOpened, patience_s(demand))
        depth, capacity_bytes = _geometry(demand, opened)
        channel = Channel(
            key=key, incarnation=stream.incarnation, depth=depth, capacity_bytes=capacity_bytes,
            first_seq=opened.first_seq, every=opened.every, reliable=demand.reliable, transport=demand.transport,
            sender=await self._host_of(via), seat=opened.seat,
        )  # fmt: skip
        channel = msgspec.structs.replace(channel, sender=await resolved(channel.sender))
        mirror = receiving.open(channel)
        ring: MirrorRing | None = None
        try:
            ring = self._mirror_ring(stream, row, channel, mirror, receiving, opened.age_ns)
            if hold:
                ring.keep(_core)
            begun = StartChannel(
                key=key, incarnation=stream.incarnation, first_seq=opened.first_seq, address=address,
                every=opened.every, transport=demand.transport, reliable=demand.reliable, size=demand.size,
                rate_hz=demand.rate_hz, here=here,
                direct=opened.seat is not None and not self._ends.hears(demand.transport, key),
            )  # fmt: skip
            await self._ask(via, service.START, begun, Nothing)
        except BaseException:
            if ring is not None:
                ring.let_go()
            receiving.close_channel(key)
            raise
        return IncomingChannel(
            key=key, via=via, transport=demand.transport, row=row, mirror=mirror, ring=ring,
            first_seq=opened.first_seq,
        )  # fmt: skip

    def _mirror_ring(
        self, stream: Stream, row: PublisherRow, channel: Channel, mirror: Mirror, receiving: Receiving,
        older_ns: int | None,
    ) -> MirrorRing:  # fmt: skip
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
            demand=stream.demand, first_seq=channel.first_seq, older_ns=older_ns,
        )  # fmt: skip

    # ------------------------------------------------------------------ what is only said

    def retuned(self, incoming: IncomingChannel) -> None:
        request = RetuneChannel(key=incoming.key, transport=incoming.transport)
        self._say(incoming.via, service.RETUNE, request, "goes on with the parameters it had")

    def taken(self, row: PublisherRow) -> None:
        """Its node need not keep anything for those here any longer."""
        request = RingTaken(incarnation=row.info.incarnation)
        self._say(row.owner, service.TAKEN, request, "may hold up a publisher for subscribers here")

    def direct(self, incoming: IncomingChannel) -> None:
        request = DirectChannel(key=incoming.key)
        self._say(incoming.via, service.DIRECT, request, "cannot be asked to send without multicast")

    def send_close(self, incoming: IncomingChannel) -> None:
        """Whoever is gone has closed it already."""
        self._say(incoming.via, service.CLOSE, CloseChannel(key=incoming.key), "")

    def _say(self, node: str, name: str, request: msgspec.Struct, otherwise: str) -> None:
        self._background.start(f"{name} to {node}", self._notify(node, name, request, otherwise))

    async def _notify(self, node: str, name: str, request: msgspec.Struct, otherwise: str) -> None:
        try:
            await self._ask(node, name, request, Nothing)
        except (TimeoutError, RingcastError, OSError) as exc:
            if otherwise:
                logger.warning("node %s %s: %s", node, otherwise, exc)

    async def _ask(
        self, node: str, name: str, request: msgspec.Struct, kind: type[_T], timeout: float = REQUEST_TIMEOUT_S
    ) -> _T:
        answer = await self._mesh.request(node, name, service.encode(request), timeout)
        return service.decode_untrusted(answer, kind)


def _geometry(demand: Demand, opened: ChannelOpened) -> tuple[int, int]:
    """The mirror's depth and capacity. A deeper one than the publisher's needs as many times the bytes; a shallower one
    must still hold the longest message."""
    if not demand.depth:
        return opened.depth, opened.capacity_bytes
    times = -(-demand.depth // opened.depth)
    return demand.depth, opened.capacity_bytes * max(1, times)
