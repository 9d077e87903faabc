"""tcp: a stream per channel, pumped by a native thread. Reliable: back-pressure reaches the publisher.

The sender connects and says which channel it is in sixteen bytes; from then on the stream carries frames. A reader that
is slow and reliable stops the receiving end from reading, the kernels' windows stop the pump, and the pump, itself a
reliable reader of the ring, holds the publisher back for at most the tag's bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading

from ringcast import _core
from ringcast.transport.addressing import bound, family_of, mark
from ringcast.transport.interface import Channel, Mirror, Promises, Source

PREAMBLE = struct.Struct("<8sQ")
MAGIC = b"RCSTREAM"
PREAMBLE_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 5.0


class Tcp:
    name = "tcp"
    promises = Promises(reliable=True, ordered=True)

    def receive(self, host: str, port: int = 0) -> TcpReceiving:
        return TcpReceiving(host, port)

    def send(self, channel: Channel, source: Source, host: str, port: int) -> TcpSending:
        return TcpSending(channel, source, host, port)


class TcpReceiving:
    """A listening socket, a thread that lets streams in, and a native thread that reads them all."""

    def __init__(self, host: str, port: int) -> None:
        self._listener = bound(socket.SOCK_STREAM, host, port)
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]
        self._streams = _core.Streams()
        self._strangers = 0
        self._thread = threading.Thread(target=self._accept, name="ringcast-tcp-accept", daemon=True)
        self._thread.start()

    def open(self, channel: Channel) -> Mirror:
        return self._streams.open(
            key=channel.key, depth=channel.depth, capacity_bytes=channel.capacity_bytes, every=channel.every,
            first_seq=channel.first_seq, reliable=channel.reliable,
        )  # fmt: skip

    def close_channel(self, key: int) -> None:
        self._streams.close_channel(key)

    def attach_fanout(self, key: int, socket_fd: int) -> None:
        self._streams.attach_fanout(key, socket_fd)

    def ended(self) -> list[int]:
        return self._streams.ended()

    def counters(self) -> dict[str, int]:
        return {"stranger": self._strangers}

    def close(self) -> None:
        # Shutting down wakes accept; closing alone would leave the thread asleep in it.
        with contextlib.suppress(OSError):  # a second call finds it so
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._streams.close()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._let_in, args=(stream,), daemon=True).start()

    def _let_in(self, stream: socket.socket) -> None:
        """Read which channel it is; whoever does not say so in time is not let in."""
        with stream:
            try:
                stream.settimeout(PREAMBLE_TIMEOUT_S)
                preamble = stream.recv(PREAMBLE.size, socket.MSG_WAITALL)
                magic, key = PREAMBLE.unpack(preamble)
            except (OSError, struct.error):
                magic = b""
            if magic != MAGIC:
                self._strangers += 1
                return
            stream.setblocking(False)
            self._streams.add_stream(key, stream.fileno())


class TcpSending:
    def __init__(self, channel: Channel, source: Source, host: str, port: int) -> None:
        self._pump: _core.Pump | None = None
        self._failed = False
        self._closing = threading.Event()
        self._socket = socket.socket(family_of(host), socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        mark(self._socket, channel.dscp)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(CONNECT_TIMEOUT_S)
        # Connecting waits for the other node, and the daemon's loop may not.
        self._thread = threading.Thread(target=self._connect, args=(channel, source, host, port), daemon=True)
        self._thread.start()

    async def ready(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
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

    def counters(self) -> dict[str, int]:
        return self._pump.counters() if self._pump is not None else {}

    def release(self) -> None:
        return

    def close(self) -> None:
        self._closing.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join()
        if self._pump is not None:
            self._pump.close()
        self._socket.close()

    def _connect(self, channel: Channel, source: Source, host: str, port: int) -> None:
        try:
            self._socket.connect((host, port))
            self._socket.sendall(PREAMBLE.pack(MAGIC, channel.key))
            self._socket.setblocking(False)
        except OSError:
            self._failed = True
            return
        if not self._closing.is_set():
            self._pump = _core.Pump(
                source.ring_fd, source.bell_fd, self._socket.fileno(), depth=source.depth,
                capacity_bytes=source.capacity_bytes, incarnation=source.ring, key=channel.key, every=channel.every,
                first_seq=channel.first_seq, reliable=channel.reliable, stream=True,
            )  # fmt: skip
