"""Sockets for hosts of either family. Addresses are what the other node said, so they are checked before use."""

from __future__ import annotations

import contextlib
import socket

from ringcast.model.priority import Marking

HEADER_BYTES = 48
"""Of every datagram (`native/wire/datagram.hpp`)."""
DSCP_SHIFT = 2
_IP_MTU = 14
_IPV6_MTU = 24
_UDP_OVERHEAD = {socket.AF_INET: 28, socket.AF_INET6: 48}
RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
SEND_BUFFER_BYTES = 4 * 1024 * 1024
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33


def family_of(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def bound(kind: socket.SocketKind, host: str, port: int) -> socket.socket:
    """A socket on `host`; without one, on every address of both families. Raises OSError."""
    if host:
        sock = socket.socket(family_of(host), kind | socket.SOCK_CLOEXEC)
    else:
        sock = socket.socket(socket.AF_INET6, kind | socket.SOCK_CLOEXEC)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        sock.bind((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


def connected_datagrams(host: str, port: int, marking: Marking) -> socket.socket:
    """A non-blocking UDP socket to one place, its packets marked. Raises OSError."""
    sock = socket.socket(family_of(host), socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        mark(sock, marking)
        _widen(sock, _SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.connect((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


def mark(sock: socket.socket, marking: Marking) -> None:
    """Mark what the socket sends from now on, also through copies of its descriptor. Raises OSError."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, marking.dscp << DSCP_SHIFT)
    # Of an IPv6 socket these are the packets to IPv4 addresses.
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, marking.dscp << DSCP_SHIFT)
    # Last: IP_TOS sets a priority of its own, and not the one that the class should have.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, marking.queue)


def marking_of(sock: socket.socket) -> Marking | None:
    """What the kernel has; None of a socket that is closed."""
    try:
        if sock.family == socket.AF_INET6:
            dscp = sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS) >> DSCP_SHIFT
        else:
            dscp = sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) >> DSCP_SHIFT
        return Marking(dscp, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY))
    except OSError:
        return None


def payload_room(sock: socket.socket) -> int:
    """How many bytes one unfragmented datagram on this connected socket can carry."""
    if sock.family == socket.AF_INET6:
        mtu = sock.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)
    else:
        mtu = sock.getsockopt(socket.IPPROTO_IP, _IP_MTU)
    return min(mtu, 65_000) - _UDP_OVERHEAD[sock.family]


def widen_receive_buffer(sock: socket.socket) -> None:
    """Make the buffer as large as allowed: a burst that finds it full is lost."""
    _widen(sock, _SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)


def _widen(sock: socket.socket, forced: int, plain: int, size: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, size)
    except OSError:  # for that one must be privileged
        sock.setsockopt(socket.SOL_SOCKET, plain, size)


def end_sending(sock: socket.socket) -> None:
    """Close it so that no copy of it, the publisher's either, can send any more."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
    sock.close()
