"""Sockets and addresses of multicast groups. IPv4 only: where nodes are known by IPv6 addresses, each is sent to.

A group has an address of its own, so that nodes hear only what they joined; all share one port. Datagrams stay within
the site (TTL) and come back to this host, where other daemons may listen.
"""

from __future__ import annotations

import socket

from ringcast.transport.addressing import connected_datagrams, widen_receive_buffer

PORT = 7419
TTL = 8
MEMBERSHIPS = 20
"""Of one socket, as the kernel allows by default."""
_IP_MULTICAST_ALL = 49
_SCOPE = int.from_bytes(socket.inet_aton("239.192.0.0"))  # organization-local, RFC 2365
_SCOPE_BITS = 14 + 4  # 239.192.0.0/14


def group_address(number: int, taken: set[str]) -> str:
    """An address for group `number`, if possible none of those taken."""
    for attempt in range(64):
        mixed = (number + attempt) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        address = socket.inet_ntoa((_SCOPE | mixed >> (64 - _SCOPE_BITS)).to_bytes(4))
        if address not in taken:
            break
    return address


def local_address(host: str, port: int) -> str:
    """The address of ours from which datagrams to `host` leave. Raises OSError."""
    with connected_datagrams(host, port, 0) as probe:
        found: str = probe.getsockname()[0]
        return found


def send_from(sock: socket.socket, interface: str) -> None:
    """Let multicast leave by the interface that has this address. Raises OSError."""
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TTL)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def sender(address: str, interface: str, dscp: int) -> socket.socket:
    """A non-blocking socket connected to the group. Raises OSError when there is no way to it."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        send_from(sock, interface)
        if dscp:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        sock.connect((address, PORT))
        sock.send(b"")
    except BaseException:
        sock.close()
        raise
    return sock


class Ears:
    """The sockets of the groups that a receiving end has joined."""

    def __init__(self) -> None:
        self._sockets: list[tuple[socket.socket, set[tuple[str, str]]]] = []

    def join(self, address: str, interface: str) -> socket.socket | None:
        """Hear a group; a socket that was opened for it, if one was needed. Raises OSError."""
        if any((address, interface) in joined for _, joined in self._sockets):
            return None
        for sock, joined in self._sockets:
            if len(joined) < MEMBERSHIPS:
                _change(sock, socket.IP_ADD_MEMBERSHIP, address, interface)
                joined.add((address, interface))
                return None
        sock = _ear()
        try:
            _change(sock, socket.IP_ADD_MEMBERSHIP, address, interface)
        except BaseException:
            sock.close()
            raise
        self._sockets.append((sock, {(address, interface)}))
        return sock

    def leave(self, address: str, interface: str) -> None:
        for sock, joined in self._sockets:
            if (address, interface) in joined:
                joined.discard((address, interface))
                try:
                    _change(sock, socket.IP_DROP_MEMBERSHIP, address, interface)
                except OSError:  # the interface went, and the membership with it
                    pass

    def close(self) -> None:
        for sock, _ in self._sockets:
            sock.close()


def _ear() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        # Every daemon of this host hears the group.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Only what this very socket joined, not what others of this host did.
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        widen_receive_buffer(sock)
        sock.bind(("", PORT))
    except BaseException:
        sock.close()
        raise
    return sock


def _change(sock: socket.socket, how: int, address: str, interface: str) -> None:
    sock.setsockopt(socket.IPPROTO_IP, how, socket.inet_aton(address) + socket.inet_aton(interface))
