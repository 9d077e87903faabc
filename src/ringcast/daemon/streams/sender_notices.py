"""What a receiving node tells the nodes that its streams come from. Nobody waits for it.

Invariant: each notice is sent once, in the background, and its failing costs nobody a stream.
"""

from __future__ import annotations

import msgspec

from ringcast.control import service
from ringcast.control.service import CloseChannel, DirectChannel, RetuneChannel, RingTaken
from ringcast.daemon.background import Background
from ringcast.daemon.mesh.interface import Mesh
from ringcast.daemon.observe.complaints import Complaints
from ringcast.daemon.streams.opening import REQUEST_TIMEOUT_S
from ringcast.daemon.streams.wanted import IncomingChannel
from ringcast.daemon.table.rows import PublisherRow
from ringcast.errors import RingcastError


class SenderNotices:
    def __init__(self, mesh: Mesh, background: Background, complaints: Complaints) -> None:
        self._mesh = mesh
        self._background = background
        self._complaints = complaints

    def retuned(self, channel: IncomingChannel) -> None:
        request = RetuneChannel(key=channel.key, transport=channel.transport)
        self._send(channel.via, service.RETUNE, request, "goes on with the parameters it had")

    def taken(self, row: PublisherRow) -> None:
        """Its node need not keep anything for subscribers here any longer."""
        request = RingTaken(incarnation=row.info.incarnation)
        self._send(row.owner, service.TAKEN, request, "may hold up a publisher for subscribers here")

    def direct(self, channel: IncomingChannel) -> None:
        """Multicast does not reach this node: it is to be sent to by itself."""
        request = DirectChannel(key=channel.key)
        self._send(channel.via, service.DIRECT, request, "cannot be asked to send without multicast")

    def send_close(self, channel: IncomingChannel) -> None:
        """A sender that is gone has closed it already."""
        self._send(channel.via, service.CLOSE, CloseChannel(key=channel.key), "")

    def _send(self, node: str, name: str, request: msgspec.Struct, otherwise: str) -> None:
        self._background.start(f"{name} to {node}", self._notify(node, name, request, otherwise))

    async def _notify(self, node: str, name: str, request: msgspec.Struct, otherwise: str) -> None:
        try:
            await self._mesh.request(node, name, service.encode(request), REQUEST_TIMEOUT_S)
        except (TimeoutError, RingcastError, OSError) as exc:
            if otherwise:
                said = str(exc) or "no answer in time"
                self._complaints.warning(node, "node %s " + otherwise + ": %s", node, said)
