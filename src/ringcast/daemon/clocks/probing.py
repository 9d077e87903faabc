"""The socket that clock probes go through, both as asker and as asked. Stamps are the kernel's where it gives them.

Invariants: only who was given a secret is answered; an answer counts once, to a question that was asked, from a node
that knows the secret; all else is dropped and counted, and nobody makes this node read more than `MOST_READ_PER_S`.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ringcast import _core
from ringcast.clock.exchange import Exchange
from ringcast.clock.own import Look
from ringcast.clock.probe import SECRET_BYTES, SIZE, ClockProbe, decode_untrusted, is_proven
from ringcast.daemon.access.pace import Bucket
from ringcast.errors import BadMessage
from ringcast.transport.addressing import bound

_SO_TIMESTAMPNS = 35  # not in Python's socket module
_TIMESPEC = struct.Struct("qq")
MAX_WAITING = 1024
"""Questions without an answer; the oldest are forgotten."""
PER_TURN = 64
MOST_READ_PER_S = 4000
"""Ten times as many as the largest mesh sends to one node."""
REST_S = 0.02
"""A socket that somebody floods is not read for so long; the kernel drops what does not fit into its buffer."""
SET_NS = 100_000
"""A clock that moved by more than this against the one that nobody sets, while a probe was under way, was set."""


class Secret(NamedTuple):
    """Who may ask, and proves it: its number is in the datagrams, the rest is not."""

    key: int
    secret: bytes

    def __repr__(self) -> str:
        return f"Secret(key={self.key})"


class _Asked(NamedTuple):
    node: str
    secret: bytes
    asked_ns: int
    apart_ns: int
    """The time of day against time since boot, when it was sent."""
    counts: bool


class Probing:
    """`on_exchange(node, exchange)` is called for each answer. Raises OSError when there is no socket to be had."""

    def __init__(self, host: str, on_exchange: Callable[[str, Exchange], None]) -> None:
        self._on_exchange = on_exchange
        self._socket = bound(socket.SOCK_DGRAM, host, 0)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.port: int = self._socket.getsockname()[1]
        self._mapped = self._socket.family == socket.AF_INET6
        self.dropped: Counter[str] = Counter()
        """By reason: unreadable, unknown key, forged, unasked; and how often the socket was left alone: throttled."""
        self._given: dict[int, tuple[str, bytes]] = {}  # by key: the node that may ask, and its secret
        self._waiting: dict[int, _Asked] = {}
        self._loop = asyncio.get_running_loop()
        self._bucket = Bucket(MOST_READ_PER_S, MOST_READ_PER_S / 4, self._loop.time())
        self._rest: asyncio.TimerHandle | None = None
        self._read()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            if self._rest is not None:
                self._rest.cancel()
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def let_ask(self, node: str) -> Secret:
        """A secret for that node; what it had before is worth nothing any more."""
        self.let_go(node)
        made = Secret(secrets.randbits(62) | 1, secrets.token_bytes(SECRET_BYTES))
        self._given[made.key] = node, made.secret
        return made

    def let_go(self, node: str) -> None:
        for key in [key for key, (owner, _) in self._given.items() if owner == node]:
            del self._given[key]
        for nonce in [nonce for nonce, asked in self._waiting.items() if asked.node == node]:
            del self._waiting[nonce]

    def forget(self) -> None:
        """This node's clock was set: what is under way says nothing."""
        self._waiting.clear()

    def ask(self, node: str, host: str, port: int, given: Secret) -> None:
        """`given` is what that node told this one. It is asked twice, one question right behind the other. The first
        makes the way warm, there and back; the second counts. After a pause one direction may take five times as long
        as the other, whichever end was at work last, and half of what they differ by is the error."""
        address = (f"::ffff:{host}" if self._mapped and ":" not in host else host, port)
        for counts in (False, True):
            self._ask(node, address, given, counts)

    def _ask(self, node: str, address: tuple[str, int], given: Secret, counts: bool) -> None:
        nonce = secrets.randbits(62)
        if len(self._waiting) >= MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        boot_ns, asked_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), _core.utc_ns()
        # After the stamp, as in an answer: what both ways have alike cancels out.
        datagram = ClockProbe(given.key, nonce).encode(given.secret)
        try:
            self._socket.sendto(datagram, address)
        except OSError:
            return  # the network is away; the mesh knows better than a probe
        self._waiting[nonce] = _Asked(node, given.secret, asked_ns, asked_ns - boot_ns, counts)

    def _read(self) -> None:
        self._rest = None
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def _readable(self) -> None:
        now_s = self._loop.time()
        for _ in range(PER_TURN):
            if self._bucket.wait_s(now_s):
                self.dropped["throttled"] += 1
                self._loop.remove_reader(self._socket.fileno())
                self._rest = self._loop.call_later(REST_S, self._read)
                return
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
                self.dropped["unreadable"] += 1
                continue
            if probe.is_answer:
                self._answered(datagram, probe, came_ns)
            else:
                self._asked(datagram, probe, came_ns, sender)

    def _asked(self, datagram: bytes, probe: ClockProbe, heard_ns: int, sender: tuple[str, int]) -> None:
        if probe.key not in self._given:
            self.dropped["unknown key"] += 1
            return
        _, secret = self._given[probe.key]
        if not is_proven(datagram, secret):
            self.dropped["forged"] += 1
            return
        answer = probe._replace(heard_ns=heard_ns, answered_ns=_core.utc_ns(), is_answer=True)
        try:
            self._socket.sendto(answer.encode(secret), sender)
        except OSError:
            pass

    def _answered(self, datagram: bytes, probe: ClockProbe, came_ns: int) -> None:
        asked = self._waiting.get(probe.nonce)
        if asked is None:
            self.dropped["unasked"] += 1
            return
        if not is_proven(datagram, asked.secret):  # the true answer may still come
            self.dropped["forged"] += 1
            return
        del self._waiting[probe.nonce]
        if not asked.counts:
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
