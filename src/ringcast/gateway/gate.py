"""Whether the network takes more for a page: how much of what was written has not been acknowledged by its machine.

A kernel takes megabytes for a slow connection before a write waits, and every one of them is delay. So nothing is
written while more than the path needs is under way: the rate that the kernel measured, times the round trip and some
slack, and never less than two packets.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios

LEAST_BYTES = 3000
MOST_BYTES = 1024 * 1024
SLACK_S = 0.05
_MIN_RTT_AT, _RATE_AT, _INFO_BYTES = 148, 160, 168  # in struct tcp_info of Linux 4.9 and later


def allowed_bytes(rate_bytes_s: float, round_trip_s: float) -> int:
    """How many bytes may be under way."""
    return int(min(MOST_BYTES, max(LEAST_BYTES, rate_bytes_s * (round_trip_s + SLACK_S))))


class Gate:
    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        if self._socket is not None and self._socket.family not in (socket.AF_INET, socket.AF_INET6):
            self._socket = None

    @property
    def under_way_bytes(self) -> int:
        """Written, and not known to have arrived."""
        waiting = self._transport.get_write_buffer_size()
        if self._socket is None:
            return waiting
        try:
            held = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):  # closed in this moment
            return waiting
        return waiting + int(struct.unpack("i", held)[0])

    @property
    def is_open(self) -> bool:
        under_way = self.under_way_bytes
        return under_way < LEAST_BYTES or under_way < self._allowed()

    def _allowed(self) -> int:
        if self._socket is None:
            return MOST_BYTES
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        except OSError:
            return LEAST_BYTES
        if len(info) < _INFO_BYTES:
            return LEAST_BYTES
        (round_trip_us,) = struct.unpack_from("I", info, _MIN_RTT_AT)
        (rate,) = struct.unpack_from("Q", info, _RATE_AT)
        return allowed_bytes(rate, round_trip_us / 1e6)
