"""Calling out for other daemons by multicast, and hearing them: one small datagram, IPv4 and IPv6.

Nothing depends on it: static peers suffice, and where multicast fails that is counted and can be shown. Each datagram
comes back to its sender where multicast works at all, so not hearing one's own datagrams shows that it does not. A
newcomer calls a few times, then seldom: who hears it, dials. Knows nothing of the mesh but how to call and whom it
heard.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

import msgspec

from ringcast.control.peering import PROTOCOL_VERSION, Scout, decode_scout_untrusted, encode_scout
from ringcast.daemon.alarm import Alarm
from ringcast.errors import BadMessage
from ringcast.model.addresses import is_ipv6, is_wildcard, join

logger = logging.getLogger("ringcast.mesh")

MAX_FOREIGN = 64

SCOUT_PORT = 7418
FIRST_CALLS_S = (0.0, 0.2, 1.0)
SELDOM_S = 10.0
_DEAF_AFTER = len(FIRST_CALLS_S)


class ScoutSettings(msgspec.Struct, frozen=True, kw_only=True):
    groups: tuple[str, ...] = ("239.255.74.17", "ff02::7417")
    port: int = SCOUT_PORT
    interface: str = ""
    """Name of the interface to call on; the system's choice if empty."""
    seldom_s: float = SELDOM_S


class ScoutStatus(msgspec.Struct, kw_only=True):
    """How well multicast works, by group."""

    group: str
    sent: int = 0
    heard_self: int = 0
    heard_others: int = 0
    bad: int = 0
    """Datagrams that were no scout's, or another version's."""
    foreign: int = 0
    """Calls of other meshes."""
    error: str = ""
    """Why it cannot be used, in the system's words; '' again once something was heard."""

    @property
    def works(self) -> bool | None:
        """None while it is too early to tell."""
        if self.error:
            return False
        return (
            True
            if self.heard_self or self.heard_others or self.foreign
            else (None if self.sent < _DEAF_AFTER else False)
        )


class Scouting:
    """Calls out where the daemon listens; `on_heard(address, incarnation)` is called for every other of the mesh.

    `listening` has a host and a port; a group whose kind of address is not among them is left alone.
    """

    def __init__(
        self,
        settings: ScoutSettings,
        *,
        mesh: str,
        incarnation: int,
        listening: list[tuple[str, int]],
        on_heard: Callable[[str, int], None],
    ) -> None:
        self._settings = settings
        self._mesh = mesh
        self._incarnation = incarnation
        self._listening = {is_ipv6(host): (host, port) for host, port in reversed(listening)}
        self._on_heard = on_heard
        self._sockets: list[_GroupSocket] = []
        self._alarm = Alarm(self._call)
        self._calls = 0
        self._foreign: set[tuple[str, int]] = set()
        self._others: set[tuple[str, str]] = set()

    def status(self) -> list[ScoutStatus]:
        return [sock.status for sock in self._sockets]

    async def start(self) -> None:
        for group in self._settings.groups:
            if is_ipv6(group) not in self._listening:
                continue
            host, port = self._listening[is_ipv6(group)]
            host = "" if is_wildcard(host) else host
            scout = Scout(mesh=self._mesh, incarnation=self._incarnation, port=port, host=host)
            sock = _GroupSocket(group, self._settings, encode_scout(scout), self._heard)
            self._sockets.append(sock)
            await sock.open()
        self._call()

    def close(self) -> None:
        self._alarm.close()
        for sock in self._sockets:
            sock.close()

    def _call(self) -> None:
        for sock in self._sockets:
            sock.call()
        self._calls += 1
        wait_s = self._settings.seldom_s
        if self._calls < len(FIRST_CALLS_S):
            wait_s = FIRST_CALLS_S[self._calls] - FIRST_CALLS_S[self._calls - 1]
        self._alarm.within(wait_s)

    def _heard(self, status: ScoutStatus, datagram: bytes, host: str) -> None:
        try:
            scout = decode_scout_untrusted(datagram)
        except BadMessage:
            status.bad += 1
            return
        status.error = ""
        if scout.incarnation == self._incarnation:
            status.heard_self += 1
        elif scout.version != PROTOCOL_VERSION:
            status.bad += 1
            if scout.mesh == self._mesh:
                self._say_foreign(host, scout.version)
        elif scout.mesh == self._mesh:
            status.heard_others += 1
            self._on_heard(join(scout.host or host, scout.port), scout.incarnation)
        else:
            status.foreign += 1
            self._say_other_mesh(host, scout.mesh)

    def _say_other_mesh(self, host: str, mesh: str) -> None:
        """Logged once each, at info level: meshes with other names are expected."""
        if (host, mesh) not in self._others and len(self._others) < MAX_FOREIGN:
            self._others.add((host, mesh))
            logger.info("a node at %s is of mesh %r and this one of %r; they do not join", host, mesh, self._mesh)

    def _say_foreign(self, host: str, version: int) -> None:
        """Once each: it goes on calling."""
        if (host, version) not in self._foreign and len(self._foreign) < MAX_FOREIGN:
            self._foreign.add((host, version))
            logger.warning(
                "a node at %s speaks peering protocol %d and this one %d; %s",
                host, version, PROTOCOL_VERSION, "use the same version of ringcast on all nodes",
            )  # fmt: skip


class _GroupSocket(asyncio.DatagramProtocol):
    """The socket of one group."""

    def __init__(
        self,
        group: str,
        settings: ScoutSettings,
        datagram: bytes,
        on_datagram: Callable[[ScoutStatus, bytes, str], None],
    ) -> None:
        self.status = ScoutStatus(group=group)
        self._settings = settings
        self._datagram = datagram
        self._on_datagram = on_datagram
        self._transport: asyncio.DatagramTransport | None = None

    async def open(self) -> None:
        try:
            sock = _join(self.status.group, self._settings)
        except OSError as exc:
            self._failed(exc)
            if self._settings.interface:
                self.status.error += f" ({self._settings.interface})"
            return
        self._transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, sock=sock)

    def call(self) -> None:
        if self._transport is not None:
            self.status.sent += 1
            self._transport.sendto(self._datagram, (self.status.group, self._settings.port))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        self._on_datagram(self.status, data, str(addr[0]))

    def error_received(self, exc: Exception) -> None:
        self._failed(exc)

    def _failed(self, exc: Exception) -> None:
        code = exc.errno if isinstance(exc, OSError) and exc.errno is not None else None
        self.status.error = f"{errno.errorcode.get(code, code)}: {exc}" if code is not None else str(exc)


def _join(group: str, settings: ScoutSettings) -> socket.socket:
    """Raises OSError: no route, no such interface, or multicast is not allowed here."""
    index = socket.if_nametoindex(settings.interface) if settings.interface else 0
    family = socket.AF_INET6 if is_ipv6(group) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        # Every daemon of this machine hears a datagram, whoever came first.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        packed = socket.inet_pton(family, group)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # A group of the link can be bound with its interface only, and here that may be the system's choice.
            sock.bind((group if index else "::", settings.port, 0, index))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, packed + struct.pack("@I", index))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        else:
            request = struct.pack("@4s4si", packed, bytes(4), index)  # struct ip_mreqn
            sock.bind((group, settings.port))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
    except OSError:
        sock.close()
        raise
    return sock
