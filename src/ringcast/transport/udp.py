"""udp: each message once, as datagrams, from the very thread that calls `send`. Ordered, not reliable.

History that a joiner asked for is pumped first; then the publisher itself pushes (`handover.py`). A publisher with
messages too long for one burst hands the channel back to the pump, which paces them. A channel with a schedule stays
with the pump, whose thread has that schedule.
"""

from __future__ import annotations

import socket

from ringcast import _core
from ringcast.control.status import InForce
from ringcast.transport.addressing import (
    HEADER_BYTES,
    bound,
    connected_datagrams,
    end_sending,
    payload_room,
    widen_receive_buffer,
)
from ringcast.transport.handover import Handover
from ringcast.transport.interface import Channel, Mirror, Promises, Source
from ringcast.transport.sealing import Sealing, native_seal
from ringcast.transport.urgent.urgency import Urgency

PACE_BYTES_PER_S = 100_000_000
PATIENCE_NS = 2_000_000
"""How long to wait for a gap to close after a later message came. Pieces that keep coming are no gap."""


class Udp:
    name = "udp"
    seals = True
    promises = Promises(reliable=False, ordered=True)

    def receive(self, host: str, port: int = 0) -> UdpReceiving:
        return UdpReceiving(host, port)

    def send(self, channel: Channel, source: Source, host: str, port: int) -> UdpSending:
        return UdpSending(channel, source, host, port)


class DatagramReceiving:
    """One socket, and one native delivery thread that reads it. Subclasses open channels."""

    def __init__(self, host: str, port: int, attended: bool = False) -> None:
        self._socket = bound(socket.SOCK_DGRAM, host, port)
        self._urgency = Urgency("")
        widen_receive_buffer(self._socket)
        self.port: int = self._socket.getsockname()[1]
        self._delivery = _core.Delivery(self._socket.fileno(), attended)

    def ended(self) -> list[int]:
        return []

    def counters(self) -> dict[str, int]:
        return self._delivery.counters()

    def prioritise(self, priority: str, publisher: int = 0) -> None:
        self._urgency = Urgency(priority, publisher)
        self._urgency.mark(self._socket)
        self._urgency.schedule(self._delivery.thread_id)

    def in_force(self) -> InForce:
        return self._urgency.in_force(self._socket, self._delivery.thread_id, own=self._urgency.asked.apart)

    def close(self) -> None:
        self._urgency.retire()
        self._delivery.close()
        self._socket.close()
        self._urgency.close()


class UdpReceiving(DatagramReceiving):
    def open(self, channel: Channel) -> Mirror:
        mirror = self._delivery.open(
            key=channel.key, depth=channel.depth, capacity_bytes=channel.capacity_bytes, every=channel.every,
            first_seq=channel.first_seq, reliable=channel.reliable, patience_ns=PATIENCE_NS,
            seal=native_seal(channel.key, channel.seal),
        )  # fmt: skip
        self._urgency.lock(mirror.ring_fd)
        return mirror

    def close_channel(self, key: int) -> None:
        self._delivery.close_channel(key)

    def attach_fanout(self, key: int, socket_fd: int) -> None:
        self._delivery.attach_fanout(key, socket_fd)


class UdpSending:
    def __init__(self, channel: Channel, source: Source, host: str, port: int) -> None:
        self._channel = channel
        self._source = source
        self._urgency = Urgency(channel.priority, channel.incarnation)
        self._socket = connected_datagrams(host, port, self._urgency.marking)
        self._chunk = payload_room(self._socket) - HEADER_BYTES
        self._sealing: Sealing | None = None
        if channel.seal is not None:
            self._chunk -= _core.SEAL_BYTES
            self._sealing = Sealing(channel.key, channel.seal)
            # The publisher's thread and the pump's: each counts by itself, or one that is late would look replayed.
            self._link, self._pump = self._sealing.sender(), self._sealing.sender()
        self._given_back = self._urgency.dedicated
        self._released = False
        self._handover = Handover(source, self._make_pump, self._push_from)
        self._urgency.lock(source.ring_fd)
        self._urgency.reserve(host)
        if self._urgency.dedicated:
            self._handover.follow(channel.first_seq)
        else:
            self._handover.begin(channel.first_seq)

    @property
    def broken(self) -> bool:
        return self._handover.broken

    async def ready(self) -> None:
        return

    @property
    def unsettled(self) -> bool:
        return self._handover.pump is not None and not self._given_back and not self._released

    def settle(self) -> None:
        """Once the history is sent, let the publisher go on by itself."""
        if self.unsettled:
            self._handover.settle()

    def too_long(self, seq: int) -> None:
        """The publisher met a message that is too long for one burst: pump from there on."""
        self._given_back = True
        self._source.links.remove_link(self._channel.key)
        self._handover.follow(seq)

    def behind(self, seq: int) -> None:
        if not self._given_back and not self._released:
            self._handover.behind(seq)

    def in_force(self) -> InForce:
        pump = self._handover.pump
        return self._urgency.in_force(self._socket, pump.thread_id if pump else 0, own=self._urgency.dedicated)

    def counters(self) -> dict[str, int]:
        sealed = {"sealed": int(self._sealing is not None)}
        return self._handover.pump.counters() if self._handover.pump is not None else sealed

    def release(self) -> None:
        self._released = True
        self._source.links.remove_link(self._channel.key)

    def close(self) -> None:
        self._urgency.retire()
        self._handover.stop()
        end_sending(self._socket)
        self._urgency.close()

    def _push_from(self, first_seq: int) -> None:
        self._source.links.add_link(
            self._channel.key, self._socket.fileno(), key=self._channel.key, every=self._channel.every,
            chunk=self._chunk, first_seq=first_seq, rank=self._urgency.rank,
            seal=self._sealing.link(self._link) if self._sealing is not None else None,
        )  # fmt: skip

    def renew_keys(self) -> None:
        if self._sealing is not None and self._sealing.renew():
            self._source.links.rekey_link(self._channel.key, self._sealing.link(self._link))

    def _make_pump(self, first_seq: int) -> _core.Pump:
        pump = _core.Pump(
            self._source.ring_fd, self._source.bell_fd, self._socket.fileno(), depth=self._source.depth,
            capacity_bytes=self._source.capacity_bytes, incarnation=self._source.ring, key=self._channel.key,
            every=self._channel.every, first_seq=first_seq, stream=False, chunk=self._chunk,
            most_bytes_per_s=PACE_BYTES_PER_S, seal=self._sealing.native if self._sealing is not None else None,
            sender=self._pump if self._sealing is not None else 0,
        )  # fmt: skip
        self._urgency.schedule(pump.thread_id)
        return pump
