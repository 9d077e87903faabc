"""How far other nodes are: hops by the time to live of a datagram, the round trip of a request, and the interface.

The other node sends one datagram with a time to live of 64 to a port that was opened for it; what is left of that on
arrival says how many routers it passed. Invariants: nothing is sent to a node that was not asked for by a daemon that
places proxies; what was measured stays until a new measurement differs clearly, so that plans do not change with noise.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Protocol

from ringcast.control import service
from ringcast.control.placing import MAX_HOPS, PROBE, Probe, Way
from ringcast.control.service import Nothing
from ringcast.daemon.background import Background
from ringcast.daemon.placing import interfaces
from ringcast.daemon.streams.resolving import resolved
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

TIME_TO_LIVE = 64
TRIES = 3
TIMEOUT_S = 1.0
PATIENCE_S = 0.8
"""So long a report waits for nodes that were never measured."""
FRESH_S = 30.0
AT_ONCE = 8
"""Nodes that are probed at the same time."""
DIFFERENT = 0.5
"""A round trip that differs by less than this share is the same."""
_KEY = struct.Struct("!Q")


class Requests(Protocol):
    async def request(self, node: str, service: str, payload: bytes, timeout: float) -> bytes: ...


class Ways:
    """`host_of` knows where a node is; `now` is a monotonic clock in seconds."""

    def __init__(
        self, mesh: Requests, host_of: Callable[[str], Awaitable[str]], now: Callable[[], float], background: Background
    ) -> None:
        self._mesh = mesh
        self._host_of = host_of
        self._now = now
        self._background = background
        self._known: dict[str, tuple[float, Way]] = {}
        self._measuring: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def to(self, nodes: list[str]) -> list[Way]:
        """To each of them that answers; where it was measured long ago, that is done again meanwhile."""
        for gone in self._known.keys() - set(nodes):
            del self._known[gone]
        for node in nodes:
            if node not in self._known or self._now() - self._known[node][0] > FRESH_S:
                self._measure_soon(node)
        if new := [self._measuring[node] for node in nodes if node not in self._known]:
            await asyncio.wait(new, timeout=PATIENCE_S)
        return [self._known[node][1] for node in nodes if node in self._known]

    def close(self) -> None:
        for task in self._measuring.values():
            task.cancel()

    def _measure_soon(self, node: str) -> None:
        if node not in self._measuring:
            self._measuring[node] = self._background.start(
                f"measuring the way to {node}", self._measure(node), lambda: self._measuring.pop(node, None)
            )

    async def serve(self, node: str, payload: bytes) -> bytes:
        """Another node measures how far it is."""
        probe = service.decode_untrusted(payload, Probe)
        if probe.port:
            host = await resolved(await self._host_of(node))
            with socket.socket(_family(host), socket.SOCK_DGRAM) as sock:
                _set_time_to_live(sock)
                try:
                    sock.sendto(_KEY.pack(probe.key), socket.MSG_DONTWAIT, (host, probe.port))
                except OSError as exc:
                    logger.debug("no probe reaches node %s: %s", node, exc)
        return service.encode(Nothing())

    async def _measure(self, node: str) -> None:
        async with self._turn:
            try:
                async with asyncio.timeout(TIMEOUT_S * (TRIES + 1)):
                    found = await self._probe(node, await resolved(await self._host_of(node)))
            except (TimeoutError, RingcastError, OSError) as exc:
                logger.debug("how far node %s is could not be measured: %s", node, exc)
                return
        known = self._known.get(node)
        self._known[node] = (self._now(), found if known is None else settled(known[1], found))

    async def _probe(self, node: str, host: str) -> Way:
        loop = asyncio.get_running_loop()
        here = interfaces.local_address(host)
        with socket.socket(_family(host), socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.bind((here, 0))
            _ask_time_to_live(sock)
            probe = Probe(port=sock.getsockname()[1], key=secrets.randbits(62))
            arrived: asyncio.Future[int] = loop.create_future()
            loop.add_reader(sock.fileno(), _read, sock, probe.key, arrived)
            try:
                fastest = await self._ask(node, probe)
                async with asyncio.timeout(TIMEOUT_S):
                    hops = await arrived
            finally:
                loop.remove_reader(sock.fileno())
        for _ in range(TRIES - 1):
            fastest = min(fastest, await self._ask(node, Probe()))
        return Way(node, hops, fastest, interfaces.bytes_per_second(here))

    async def _ask(self, node: str, probe: Probe) -> float:
        before = self._now()
        await self._mesh.request(node, PROBE, service.encode(probe), TIMEOUT_S)
        return self._now() - before


def settled(old: Way, new: Way) -> Way:
    """The new one where it is clearly another, else the old one."""
    same = (old.hops, old.bandwidth) == (new.hops, new.bandwidth)
    low, high = sorted((old.round_trip_s, new.round_trip_s))
    return old if same and high <= low * (1 + DIFFERENT) else new


def hops_of(left: int) -> int:
    """From what is left of the time to live."""
    return max(1, min(MAX_HOPS, TIME_TO_LIVE - left + 1))


def _read(sock: socket.socket, key: int, arrived: asyncio.Future[int]) -> None:
    try:
        data, ancillary, _, _ = sock.recvmsg(_KEY.size, socket.CMSG_SPACE(4))
    except OSError:
        return
    if arrived.done() or len(data) != _KEY.size or _KEY.unpack(data)[0] != key:
        return
    for level, kind, value in ancillary:
        if (level, kind) in ((socket.IPPROTO_IP, socket.IP_TTL), (socket.IPPROTO_IPV6, socket.IPV6_HOPLIMIT)):
            arrived.set_result(hops_of(int.from_bytes(value[:4], "little")))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _set_time_to_live(sock: socket.socket) -> None:
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, TIME_TO_LIVE)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TIME_TO_LIVE)


def _ask_time_to_live(sock: socket.socket) -> None:
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_RECVTTL", 12), 1)
