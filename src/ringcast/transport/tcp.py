"""tcp: a stream per channel, pumped by a native thread. Reliable: back-pressure reaches the publisher.

The sender connects and says which channel it is in sixteen bytes; from then on the stream carries frames. A reader that
is slow and reliable stops the receiving end from reading, the kernels' windows stop the pump, and the pump, itself a
reliable reader of the ring, holds the publisher back for at most the tag's bound.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
from concurrent.futures import Future

from ringcast import _core
from ringcast.control.status import InForce
from ringcast.errors import RingcastError
from ringcast.transport.addressing import bound, family_of
from ringcast.transport.interface import Channel, Mirror, Promises, Source
from ringcast.transport.sealing import native_seal
from ringcast.transport.streams.congestion import Congestion
from ringcast.transport.streams.intake import MAGIC, PREAMBLE, StreamIntake
from ringcast.transport.urgent.urgency import Urgency

CONNECT_TIMEOUT_S = 5.0
# struct tcp_info of Linux: tcpi_total_retrans and tcpi_data_segs_out, which counts these too.
_RESENT, _RESENT_AT, _SEGMENTS_AT, _TCP_INFO_BYTES = struct.Struct("=I"), 100, 156, 160

logger = logging.getLogger(__name__)


class Tcp:
    name = "tcp"
    seals = True
    promises = Promises(reliable=True, ordered=True)

    def receive(self, host: str, port: int = 0) -> TcpReceiving:
        return TcpReceiving(host, port)

    def send(self, channel: Channel, source: Source, host: str, port: int) -> TcpSending:
        return TcpSending(channel, source, host, port)


class TcpReceiving:
    """A listening socket, a thread that lets streams in, and a native thread that reads them all."""

    def __init__(self, host: str, port: int) -> None:
        self._listener = listener = bound(socket.SOCK_STREAM, host, port)
        self._urgency = Urgency("")
        listener.listen(64)
        self.port: int = listener.getsockname()[1]
        self._streams = _core.Streams()
        self._intake = StreamIntake(listener, self._streams.add_stream)

    def open(self, channel: Channel) -> Mirror:
        mirror = self._streams.open(
            key=channel.key, depth=channel.depth, capacity_bytes=channel.capacity_bytes, every=channel.every,
            first_seq=channel.first_seq, reliable=channel.reliable, seal=native_seal(channel.key, channel.seal),
        )  # fmt: skip
        self._urgency.lock(mirror.ring_fd)
        return mirror

    def close_channel(self, key: int) -> None:
        self._streams.close_channel(key)

    def attach_fanout(self, key: int, socket_fd: int) -> None:
        self._streams.attach_fanout(key, socket_fd)

    def ended(self) -> list[int]:
        return self._streams.ended()

    def prioritise(self, priority: str, publisher: int = 0) -> None:
        self._urgency = Urgency(priority, publisher)
        self._urgency.mark(self._listener)  # streams that it accepts answer as it is marked
        self._urgency.schedule(self._streams.thread_id)

    def in_force(self) -> InForce:
        return self._urgency.in_force(self._listener, self._streams.thread_id, own=self._urgency.asked.apart)

    def counters(self) -> dict[str, int]:
        return {**self._intake.counters(), "failures": self._streams.failures}

    def close(self) -> None:
        self._urgency.retire()
        self._intake.close()
        self._streams.close()
        self._urgency.close()


def sent_again(stream: socket.socket) -> dict[str, int]:
    """What the kernel counts of a stream: `segments` that it sent, and how many of these were `resent` because nobody
    acknowledged them. Only the sender's kernel knows that something was lost."""
    try:
        told = stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:  # closed meanwhile
        return {}
    if len(told) < _TCP_INFO_BYTES:
        return {}
    resent, segments = _RESENT.unpack_from(told, _RESENT_AT)[0], _RESENT.unpack_from(told, _SEGMENTS_AT)[0]
    return {"segments": segments, "resent": resent}


class TcpSending:
    def __init__(self, channel: Channel, source: Source, host: str, port: int) -> None:
        self._pump: _core.Pump | None = None
        self._failed = False
        self._closing = threading.Event()
        self._socket = socket.socket(family_of(host), socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._urgency = Urgency(channel.priority, channel.incarnation)
        self._urgency.mark(self._socket)
        self._urgency.lock(source.ring_fd)
        self._urgency.reserve(host)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._congestion = Congestion(self._socket)
        self._socket.settimeout(CONNECT_TIMEOUT_S)
        # Connecting waits for the other node, and the daemon's loop may not.
        self._connected: Future[None] = Future()
        self._thread = threading.Thread(target=self._begin, args=(channel, source, host, port), daemon=True)
        self._thread.start()

    async def ready(self) -> None:
        # No thread of a shared pool waits here: a few nodes that do not answer would take them all.
        await asyncio.shield(asyncio.wrap_future(self._connected))
        if self._failed:
            raise ConnectionError("the other node does not take the stream")

    @property
    def unsettled(self) -> bool:
        return False

    def settle(self) -> None:
        return

    def too_long(self, seq: int) -> None:
        return

    def behind(self, seq: int) -> None:
        return

    @property
    def broken(self) -> bool:
        return self._failed or (self._pump is not None and self._pump.state == "broken")

    def in_force(self) -> InForce:
        return self._urgency.in_force(self._socket, self._pump.thread_id if self._pump else 0, own=True)

    def counters(self) -> dict[str, int]:
        return {**self._pump.counters(), **sent_again(self._socket)} if self._pump is not None else {}

    def look(self) -> None:
        self._congestion.look()

    def release(self) -> None:
        return

    def close(self) -> None:
        self._closing.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join()
        self._urgency.retire()
        if self._pump is not None:
            self._pump.close()
        self._socket.close()
        self._urgency.close()

    def _begin(self, channel: Channel, source: Source, host: str, port: int) -> None:
        try:
            self._connect(channel, source, host, port)
        except BaseException:
            self._failed = True
            raise
        finally:
            self._connected.set_result(None)

    def _connect(self, channel: Channel, source: Source, host: str, port: int) -> None:
        try:
            self._socket.connect((host, port))
            self._congestion.connected()
            self._socket.sendall(PREAMBLE.pack(MAGIC, channel.key))
            self._socket.setblocking(False)
        except OSError:
            self._failed = True
            return
        if self._closing.is_set():
            return
        try:
            self._pump = _core.Pump(
                source.ring_fd, source.bell_fd, self._socket.fileno(), depth=source.depth,
                capacity_bytes=source.capacity_bytes, incarnation=source.ring, key=channel.key, every=channel.every,
                first_seq=channel.first_seq, reliable=channel.reliable, stream=True,
                seal=native_seal(channel.key, channel.seal), heads=channel.heads,
            )  # fmt: skip
            self._urgency.schedule(self._pump.thread_id)
        except RingcastError as exc:  # no thread, no mapping, or a ring that is damaged
            logger.warning("a channel to %s cannot be sent: %s", host, exc)
            self._failed = True
