"""What a session still has to say to its daemon, because the daemon's side of the socket was full.

Invariants: nothing here blocks, so the thread that reads the socket never waits for the daemon to read; packets go out
in the order in which they were given; how much waits is bounded, and more raises `OutboxFull`. Descriptors of packets
that wait are copies, closed here. Its user calls it under a lock.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ringcast.client.descriptors import copies
from ringcast.control import link
from ringcast.control.framing import encode
from ringcast.errors import RingcastError

MAX_PACKETS = 16_384
MAX_BYTES = 32 * 1024 * 1024


class OutboxFull(Exception):
    """The daemon has not read for so long that no more may wait."""


class _Packet(NamedTuple):
    number: int
    data: bytes
    fds: list[int]


class Outbox:
    def __init__(self, max_packets: int = MAX_PACKETS, max_bytes: int = MAX_BYTES) -> None:
        self._max_packets = max_packets
        self._max_bytes = max_bytes
        self._waiting: deque[_Packet] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def send(self, sock: socket.socket, number: int, message: msgspec.Struct, fds: Sequence[int] = ()) -> bool:
        """Send the message now, or keep it until `flush`; whether it is gone. The descriptors stay the caller's.

        Raises OutboxFull, BadMessage, ResourceLimit, OSError (the daemon is gone).
        """
        packet = encode(message)
        if not self._waiting:
            try:
                link.send_packet(sock, packet, fds)
                return True
            except BlockingIOError:
                pass
        if len(self._waiting) >= self._max_packets or self._bytes + len(packet) > self._max_bytes:
            raise OutboxFull(f"it has not read {len(self._waiting)} requests")
        self._waiting.append(_Packet(number, packet, copies(fds)))
        self._bytes += len(packet)
        return False

    def flush(self, sock: socket.socket) -> list[tuple[int, RingcastError]]:
        """Send what there is room for; the numbers of those that cannot be sent, and why. Raises OSError."""
        failed: list[tuple[int, RingcastError]] = []
        while self._waiting:
            packet = self._waiting[0]
            try:
                link.send_packet(sock, packet.data, packet.fds)
            except BlockingIOError:
                break
            except RingcastError as exc:
                failed.append((packet.number, exc))
            self._drop_first()
        return failed

    def clear(self) -> None:
        while self._waiting:
            self._drop_first()

    def _drop_first(self) -> None:
        packet = self._waiting.popleft()
        self._bytes -= len(packet.data)
        link.close_all(packet.fds)
