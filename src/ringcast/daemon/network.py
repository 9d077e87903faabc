"""This daemon among others: the mesh, the streams that come and the streams that go, wired to the local manager.

A daemon without a network has none of this and opens no port. Invariant: whatever this node writes into the table
reaches the mesh, and whatever changes there is followed by the channels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from ringcast.control import service
from ringcast.control.messages import ChannelStatus, NodeStatus, Subscribe
from ringcast.control.service import CloseChannel, Nothing, OpenChannel, StartChannel
from ringcast.daemon import addresses
from ringcast.daemon.delivery import Delivery
from ringcast.daemon.distribution import Distribution
from ringcast.daemon.effects import Send
from ringcast.daemon.fanout import FanOut
from ringcast.daemon.liveliness import Presence
from ringcast.daemon.local import Local, demand_of
from ringcast.daemon.mesh import CONTROL_PORT, Mesh
from ringcast.daemon.pull import Pulls
from ringcast.daemon.rows import Change, ChangeKind, PublisherRow
from ringcast.daemon.scouting import ScoutSettings
from ringcast.daemon.telemetry import Telemetry
from ringcast.errors import BrokenError, QosMismatch
from ringcast.transport.registry import find, reliable_names

logger = logging.getLogger("ringcast.daemon")


class NetworkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a daemon listens and whom it calls. Scouting finds others by multicast; static peers suffice."""

    listen: tuple[str, ...]
    peers: tuple[str, ...] = ()
    scout: bool = True


class Network:
    """`deliver` hands what clients are to be told to the shell."""

    def __init__(self, local: Local, settings: NetworkSettings, deliver: Callable[[list[Send]], None]) -> None:
        self._local = local
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self.mesh = Mesh(
            local.table, on_changes=self._changed_elsewhere, on_presence=self._presence, listen=settings.listen,
            peers=settings.peers, scouting=ScoutSettings() if settings.scout else None,
        )  # fmt: skip
        host = addresses.split(settings.listen[0], CONTROL_PORT)[0]
        self.delivery = Delivery(local, self.mesh, "" if host in ("0.0.0.0", "::") else host, deliver, self._linked)
        self.distribution = Distribution(self.delivery)
        self.pulls = Pulls(local, self.mesh)
        for name, handler in ((service.OPEN, self._open), (service.START, self._start), (service.CLOSE, self._close)):
            self.mesh.serve(name, handler)
        self.mesh.serve(service.PULL, self.pulls.serve)
        self._telemetry = Telemetry(local, self.status, deliver, self.local_changed)

    async def start(self) -> None:
        """Raises OSError when an address cannot be listened on."""
        await self.mesh.start()
        self._telemetry.start()

    async def close(self) -> None:
        self._telemetry.close()
        self.distribution.close()
        self.delivery.close()
        await self.mesh.close()

    @asynccontextmanager
    async def prepared(self, request: Subscribe) -> AsyncIterator[None]:
        """Open what a subscription needs from other nodes; within, it can be granted."""
        if request.role != "subscriber":
            yield
            return
        with self.delivery.expecting(request.pattern, demand_of(request)):
            await self.delivery.prepare(request.pattern, demand_of(request), request.start)
            yield

    def local_changed(self) -> None:
        """A client's request is done: tell the others what it wrote, and follow."""
        changes = self._local.take_changes()
        if not changes:
            return
        self.mesh.changed(changes)
        for change in changes:
            if isinstance(change.row, PublisherRow) and (change.kind is ChangeKind.REMOVED or not change.row.alive):
                self.distribution.ring_gone(change.row.info.incarnation)
        self.delivery.follow()

    # ------------------------------------------------------------------ what happens elsewhere

    def _changed_elsewhere(self, changes: list[Change]) -> None:
        self._deliver(self._local.changed(changes))
        self.delivery.follow()

    def _presence(self, presences: list[Presence]) -> None:
        for presence in presences:
            if presence.kind == "node" and not presence.came:
                self.distribution.node_gone(presence.node)
                self.delivery.node_gone(presence.node)

    # ------------------------------------------------------------------ what others ask

    async def _open(self, node: str, payload: bytes) -> bytes:
        return service.encode(await self.distribution.open(service.decode_untrusted(payload, OpenChannel)))

    async def _start(self, node: str, payload: bytes) -> bytes:
        request = service.decode_untrusted(payload, StartChannel)
        record = self.mesh.node(node)
        if record is None or not record.control:
            raise BrokenError(f"node {node!r} is not in the mesh")
        host = addresses.split(record.control[0], CONTROL_PORT)[0]
        try:
            await self.distribution.start(node, host, request)
        except OSError as exc:
            raise BrokenError(f"no data reaches node {node!r} at {host}: {exc.strerror or exc}") from exc
        return service.encode(Nothing())

    async def _close(self, node: str, payload: bytes) -> bytes:
        self.distribution.close_channel(service.decode_untrusted(payload, CloseChannel))
        return service.encode(Nothing())

    def _linked(self, fanout: FanOut) -> None:
        """Whoever pushes for this fan-out, a publisher or a mirror, may give links back."""
        if fanout.unlisten is None:
            self._loop.add_reader(fanout.fileno(), self._answered, fanout)
            fanout.unlisten = partial(self._unlisten, fanout.fileno())

    def _unlisten(self, fd: int) -> None:
        self._loop.remove_reader(fd)

    def _answered(self, fanout: FanOut) -> None:
        """A publisher gave links back, or closed its end."""
        answers = fanout.take_answers()
        if not answers and fanout.unlisten is not None:
            fanout.unlisten()
        for key, seq in answers:
            self.distribution.too_long(key, seq)

    # ------------------------------------------------------------------ what `ringcast nodes` and `channels` show

    def nodes(self) -> list[NodeStatus]:
        return [NodeStatus(**msgspec.structs.asdict(row)) for row in self.mesh.nodes()]

    def status(self) -> tuple[list[ChannelStatus], dict[str, dict[str, int]]]:
        """The channels of this node, and {transport: {reason: count}} of what its receiving ends dropped."""
        tags = {row.info.incarnation: row.info.tag for row in self._local.table.all_publishers()}
        outgoing = [
            _status(
                channel.sending.counters(), direction="out", node=channel.node, incarnation=channel.incarnation,
                tag=tags.get(channel.incarnation, ""), transport=channel.transport, every=channel.every,
                reliable=channel.reliable,
            )
            for channel in self.distribution.channels.values()
        ]  # fmt: skip
        incoming = [
            _status(
                channel.mirror.counters(), direction="in", node=channel.via, incarnation=stream.incarnation,
                tag=channel.row.info.tag, transport=channel.transport, every=stream.demand.every,
                reliable=stream.demand.reliable,
            )
            for stream, channel in self.delivery.channels.items()
        ]  # fmt: skip
        return outgoing + incoming, self.delivery.dropped()


def check_transport(request: Subscribe) -> None:
    """Raises QosMismatch when there is no such transport, or it does not promise what is asked for."""
    if request.transport and request.reliable and not find(request.transport).promises.reliable:
        raise QosMismatch(
            "reliable delivery", f"transport {request.transport!r} does not promise it",
            f"use {' or '.join(reliable_names())}, or subscribe with reliable=False",
        )  # fmt: skip
    if request.transport:
        find(request.transport)


def _status(counters: dict[str, int], **fields: Any) -> ChannelStatus:
    messages, size, lost = (counters.pop(name, None) for name in ("messages", "bytes", "lost"))
    return ChannelStatus(**fields, messages=messages, bytes=size, lost=lost, counters=counters)
