"""The socket that clock probes go through, both as asker and as asked. Stamps are the kernel's where it gives them.

Invariant: only who was given a key is answered, and only an answer to a question that was asked counts, once.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from ringcast import _core
from ringcast.clock.exchange import Exchange
from ringcast.clock.own import Look
from ringcast.clock.probe import SIZE, ClockProbe, decode_untrusted
from ringcast.errors import BadMessage
from ringcast.transport.addressing import bound

_SO_TIMESTAMPNS = 35  # not in Python's socket module
_TIMESPEC = struct.Struct("qq")
MAX_WAITING = 1024
"""Questions without an answer; the oldest are forgotten."""
PER_TURN = 64
SET_NS = 100_000
"""A clock that moved by more than this against the one that nobody sets, while a probe was under way, was set."""


class _Asked(NamedTuple):
    node: str
    asked_ns: int
    apart_ns: int
    """The time of day against time since boot, when it was sent."""


class Probing:
    """`on_exchange(node, exchange)` is called for each answer. Raises OSError when there is no socket to be had."""

    def __init__(self, host: str, on_exchange: Callable[[str, Exchange], None]) -> None:
        self._on_exchange = on_exchange
        self._socket = bound(socket.SOCK_DGRAM, host, 0)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.port: int = self._socket.getsockname()[1]
        self._mapped = self._socket.family == socket.AF_INET6
        self._keys: dict[int, str] = {}
        self._waiting: dict[int, _Asked] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def let_ask(self, node: str) -> int:
        """A key for that node; what it had before is worth nothing any more."""
        self.let_go(node)
        key = secrets.randbits(62) | 1
        self._keys[key] = node
        return key

    def let_go(self, node: str) -> None:
        for key in [key for key, owner in self._keys.items() if owner == node]:
            del self._keys[key]
        for nonce in [nonce for nonce, asked in self._waiting.items() if asked.node == node]:
            del self._waiting[nonce]

    def forget(self) -> None:
        """This node's clock was set: what is under way says nothing."""
        self._waiting.clear()

    def ask(self, node: str, host: str, port: int, key: int) -> None:
        nonce = secrets.randbits(62)
        if len(self._waiting) >= MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        address = (f"::ffff:{host}" if self._mapped and ":" not in host else host, port)
        datagram = ClockProbe(key, nonce).encode()
        boot_ns, asked_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), _core.utc_ns()
        try:
            self._socket.sendto(datagram, address)
        except OSError:
            return  # the network is away; the mesh knows better than a probe
        self._waiting[nonce] = _Asked(node, asked_ns, asked_ns - boot_ns)

    def _readable(self) -> None:
        for _ in range(PER_TURN):
            try:
                datagram, ancillary, _, sender = self._socket.recvmsg(SIZE + 1, socket.CMSG_SPACE(_TIMESPEC.size))
            except BlockingIOError:
                return
            except OSError:  # an earlier one was refused
                continue
            came_ns = _stamp(ancillary)
            try:
                probe = decode_untrusted(datagram)
            except BadMessage:
                continue
            if probe.is_answer:
                self._answered(probe, came_ns)
            elif probe.key in self._keys:
                self._answer(probe, came_ns, sender)

    def _answer(self, probe: ClockProbe, heard_ns: int, sender: tuple[str, int]) -> None:
        answer = probe._replace(heard_ns=heard_ns, answered_ns=_core.utc_ns(), is_answer=True)
        try:
            self._socket.sendto(answer.encode(), sender)
        except OSError:
            pass

    def _answered(self, probe: ClockProbe, came_ns: int) -> None:
        asked = self._waiting.pop(probe.nonce, None)
        if asked is None:
            return
        boot_ns, utc_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), _core.utc_ns()
        if abs(utc_ns - boot_ns - asked.apart_ns) > SET_NS:
            return
        self._on_exchange(
            asked.node, Exchange(asked.asked_ns, probe.heard_ns, probe.answered_ns, came_ns, boot_ns - utc_ns + came_ns)
        )


def look() -> Look:
    """The clocks of this node at one moment: of three readings the one that was interrupted least."""
    return min((_look() for _ in range(3)), key=lambda found: found[0])[1]


def _look() -> tuple[int, Look]:
    awake_ns, boot_ns = time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    utc_ns = _core.utc_ns()
    return time.monotonic_ns() - awake_ns, Look(utc_ns, boot_ns, awake_ns)


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(value) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(value[: _TIMESPEC.size])
            return _core.utc_of(seconds * 1_000_000_000 + nanoseconds)
    return _core.utc_ns()
