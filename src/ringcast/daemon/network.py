"""This daemon among others: the mesh, the streams that come and the streams that go, wired to the local manager.

A daemon without a network has none of this and opens no port. Invariant: whatever this node writes into the table
reaches the mesh, and whatever changes there is followed by the channels.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from ringcast.control import service
from ringcast.control.messages import Subscribe
from ringcast.control.service import CloseChannel, Nothing, OpenChannel, StartChannel
from ringcast.daemon import addresses
from ringcast.daemon.delivery import Delivery
from ringcast.daemon.distribution import Distribution
from ringcast.daemon.effects import Send
from ringcast.daemon.holdings import Ring
from ringcast.daemon.liveliness import Presence
from ringcast.daemon.local import Local, demand_of
from ringcast.daemon.mesh import CONTROL_PORT, Mesh
from ringcast.daemon.rows import Change, ChangeKind, PublisherRow
from ringcast.daemon.scouting import ScoutSettings
from ringcast.errors import BrokenError

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
        self.delivery = Delivery(local, self.mesh, "" if host in ("0.0.0.0", "::") else host, deliver)
        self.distribution = Distribution(self.delivery)
        self._watched: dict[int, Ring] = {}
        for name, handler in ((service.OPEN, self._open), (service.START, self._start), (service.CLOSE, self._close)):
            self.mesh.serve(name, handler)

    async def start(self) -> None:
        """Raises OSError when an address cannot be listened on."""
        await self.mesh.start()

    async def close(self) -> None:
        self.distribution.close()
        self.delivery.close()
        for fd in self._watched:
            self._loop.remove_reader(fd)
        await self.mesh.close()

    async def prepare(self, request: Subscribe) -> None:
        """Open what a subscription needs from other nodes, before it is granted."""
        if request.role == "subscriber":
            await self.delivery.prepare(request.pattern, demand_of(request), request.start)

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
        ring = self._local.rings.of_incarnation(request.incarnation)
        if ring is not None and ring.fanout.fileno() not in self._watched:
            self._watched[ring.fanout.fileno()] = ring
            self._loop.add_reader(ring.fanout.fileno(), partial(self._answered, ring, ring.fanout.fileno()))
        return service.encode(Nothing())

    async def _close(self, node: str, payload: bytes) -> bytes:
        self.distribution.close_channel(service.decode_untrusted(payload, CloseChannel))
        return service.encode(Nothing())

    def _answered(self, ring: Ring, fd: int) -> None:
        """A publisher gave links back, or closed its end."""
        answers = ring.fanout.take_answers()
        if not answers:
            self._loop.remove_reader(fd)
            self._watched.pop(fd, None)
        for key, seq in answers:
            self.distribution.too_long(key, seq)


def status(network: Network) -> dict[str, Any]:
    """What `ringcast channels` shows of this node."""
    outgoing = [
        {
            "direction": "out", "node": channel.node, "incarnation": channel.incarnation,
            "transport": channel.transport, "every": channel.every, "reliable": channel.reliable,
            **channel.sending.counters(),
        }
        for channel in network.distribution.channels.values()
    ]  # fmt: skip
    incoming = [
        {
            "direction": "in", "node": channel.via, "tag": channel.row.info.tag,
            "incarnation": channel.row.info.incarnation, "transport": channel.transport,
            "every": stream.demand.every, "reliable": stream.demand.reliable, **channel.mirror.counters(),
        }
        for stream, channel in network.delivery.channels.items()
    ]  # fmt: skip
    return {"channels": outgoing + incoming, "dropped": network.delivery.counters()}
