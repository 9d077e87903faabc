"""One client's socket in the daemon's event loop: packets in, and an outbox for when the client does not read.

Invariants: never blocks; the outbox is bounded, and overflowing it ends the connection; nothing is read from a client
that has answers waiting, so its own requests cannot fill its outbox. Does not know what the messages mean.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable

import msgspec

from ringcast.control.descriptor import Openable
from ringcast.control.framing import encode
from ringcast.control.link import send_packet
from ringcast.errors import ResourceLimit

MAX_OUTBOX_BYTES = 32 * 1024 * 1024
PACKET_OVERHEAD_BYTES = 200
RETRY_S = 0.05


class Connection:
    """`on_readable` is called when a packet may be there, `on_broken` when the client is to be dropped, and why."""

    def __init__(
        self,
        number: int,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_readable: Callable[[Connection], None],
        on_broken: Callable[[Connection, str], None],
        max_outbox_bytes: int = MAX_OUTBOX_BYTES,
    ) -> None:
        sock.setblocking(False)
        self.number = number
        self.socket = sock
        self.greeted = False
        self.closed = False
        self._loop = loop
        self._on_readable = on_readable
        self._on_broken = on_broken
        self._outbox: deque[tuple[bytes, tuple[Openable, ...]]] = deque()
        self._outbox_bytes = 0
        self._max_outbox_bytes = max_outbox_bytes
        self._ending = False
        self._blocked = False
        self._retry: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._silent: asyncio.TimerHandle | None = None
        self._fd = sock.fileno()
        loop.add_reader(self._fd, self._on_readable, self)

    @property
    def reading(self) -> bool:
        """Whether more packets may be taken from the client now."""
        return not self.closed and not self._outbox and not self._ending and self._resting is None

    def expect_hello(self, seconds: float, on_silent: Callable[[], None]) -> None:
        """Have `on_silent` called if it was not greeted by then."""
        self._silent = self._loop.call_later(seconds, on_silent)

    def greet(self) -> None:
        self.greeted = True
        if self._silent is not None:
            self._silent.cancel()

    def rest(self, seconds: float) -> None:
        """Read nothing for so long."""
        if self.closed or self._resting is not None:
            return
        self._loop.remove_reader(self._fd)
        self._resting = self._loop.call_later(seconds, self._rested)

    def _rested(self) -> None:
        self._resting = None
        if not (self.closed or self._ending or self._blocked):
            self._loop.add_reader(self._fd, self._on_readable, self)

    def push(self, message: msgspec.Struct, fds: tuple[Openable, ...] = ()) -> None:
        """Send a message, now or as soon as the client makes room."""
        if self.closed:
            return
        packet = encode(message)
        self._outbox.append((packet, fds))
        self._outbox_bytes += len(packet) + PACKET_OVERHEAD_BYTES
        if not self._blocked:
            self._flush()
        elif self._outbox_bytes > self._max_outbox_bytes:
            self._on_broken(self, "slow")

    def end(self) -> None:
        """Close once what waits has been sent; read nothing more."""
        self._ending = True
        if not self.closed:
            self._loop.remove_reader(self._fd)
            if not self._outbox:
                self._on_broken(self, "bye")

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        for timer in (self._retry, self._resting, self._silent):
            if timer is not None:
                timer.cancel()
        self._outbox.clear()
        self.socket.close()

    def _flush(self) -> None:
        self._retry = None
        while self._outbox:
            packet, fds = self._outbox[0]
            try:
                opened = [fd.open() for fd in fds]
                send_packet(self.socket, packet, [fd.fileno() for fd in opened])
            except BlockingIOError:
                self._block()
                self._loop.add_writer(self._fd, self._flush)
                return
            except ResourceLimit:
                # The socket may look writable all the while, so only the clock can tell when to try again.
                self._block()
                self._retry = self._loop.call_later(RETRY_S, self._flush)
                return
            except OSError:
                self._on_broken(self, "gone")
                return
            self._outbox.popleft()
            self._outbox_bytes -= len(packet) + PACKET_OVERHEAD_BYTES
        if self._blocked:
            self._blocked = False
            self._loop.remove_writer(self._fd)
            if self._ending:
                self._on_broken(self, "bye")
            elif self._resting is None:
                self._loop.add_reader(self._fd, self._on_readable, self)

    def _block(self) -> None:
        self._blocked = True
        self._loop.remove_writer(self._fd)
        self._loop.remove_reader(self._fd)
