"""Sockets and addresses of multicast groups, of IPv4 and IPv6 alike: a group is of the family that its nodes use.

A group has an address of its own, so that nodes hear only what they joined; all share one port. Datagrams stay within
the site (hop limit, and the scope of the address) and come back to this host, where other daemons may listen. An
interface is named by an address of ours on it.
"""

from __future__ import annotations

import errno
import socket
import struct
from pathlib import Path

from ringcast.model import addresses
from ringcast.model.priority import Marking
from ringcast.transport.addressing import connected_datagrams, family_of, mark, widen_receive_buffer

PORT = 7419
HOPS = 8
MEMBERSHIPS = 20
"""Of one socket, as the kernel allows by default."""
_MULTICAST_ALL = {
    socket.AF_INET: (socket.IPPROTO_IP, 49),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 29),
}
_SCOPE = int.from_bytes(socket.inet_aton("239.192.0.0"))  # organization-local, RFC 2365
_SCOPE_BITS = 14 + 4  # 239.192.0.0/14
_SITE_LOCAL, _LINK_LOCAL = "ff15::", "ff12::"  # transient, RFC 4291
_DYNAMIC, _DYNAMIC_BITS = (
    1 << 31,
    31,
)  # group IDs that are allocated by hosts, RFC 3307; they tell Ethernet addresses apart
_ADDRESSES = Path("/proc/net/if_inet6")


def group_address(number: int, taken: set[str], local: str = "") -> str:
    """An address for group `number` of the family of `local`, if possible none of those taken."""
    for attempt in range(64):
        mixed = (number + attempt) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        if family_of(local) == socket.AF_INET:
            address = socket.inet_ntoa((_SCOPE | mixed >> (64 - _SCOPE_BITS)).to_bytes(4))
        else:
            scope = _LINK_LOCAL if local.lower().startswith("fe80:") else _SITE_LOCAL
            group = _DYNAMIC | mixed >> (64 - _DYNAMIC_BITS)
            whole = int.from_bytes(socket.inet_pton(socket.AF_INET6, scope)) | group
            address = socket.inet_ntop(socket.AF_INET6, whole.to_bytes(16))
        if address not in taken:
            break
    return address


def with_port(address: str) -> str:
    return addresses.join(address, PORT)


def without_port(text: str) -> str:
    return text.rpartition(":")[0].strip("[]")


def local_address(host: str, port: int) -> str:
    """The address of ours from which datagrams to `host` leave. Raises OSError."""
    with connected_datagrams(host, port, Marking()) as probe:
        found: str = probe.getsockname()[0]
        return found


def interface_number(address: str, listing: str) -> int:
    """Of the interface that has this IPv6 address; `listing` is /proc/net/if_inet6. Raises OSError."""
    wanted = socket.inet_pton(socket.AF_INET6, address.partition("%")[0]).hex()
    for line in listing.splitlines():
        words = line.split()
        if words and words[0] == wanted:
            return int(words[1], 16)
    raise OSError(errno.EADDRNOTAVAIL, f"no interface of this host has the address {address}")


def send_from(sock: socket.socket, interface: str) -> None:
    """Let multicast leave by the interface that has this address. Raises OSError."""
    if family_of(interface) == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOPS)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, _number(interface))
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOPS)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)


def sender(address: str, interface: str, marking: Marking) -> socket.socket:
    """A non-blocking socket connected to the group. Raises OSError when there is no way to it."""
    sock = socket.socket(family_of(address), socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        send_from(sock, interface)
        mark(sock, marking)
        sock.connect((address, PORT))
        sock.send(b"")
    except BaseException:
        sock.close()
        raise
    return sock


class GroupSockets:
    """The sockets of the groups that a receiving end has joined."""

    def __init__(self) -> None:
        self._sockets: list[tuple[socket.socket, set[tuple[str, str]]]] = []

    def join(self, address: str, interface: str) -> socket.socket | None:
        """Hear a group; a socket that was opened for it, if one was needed. Raises OSError."""
        if any((address, interface) in joined for _, joined in self._sockets):
            return None
        for sock, joined in self._sockets:
            if sock.family == family_of(address) and len(joined) < MEMBERSHIPS:
                _change(sock, address, interface, join=True)
                joined.add((address, interface))
                return None
        sock = _group_socket(family_of(address))
        try:
            _change(sock, address, interface, join=True)
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
                    _change(sock, address, interface, join=False)
                except OSError:  # the interface went, and the membership with it
                    pass

    def close(self) -> None:
        for sock, _ in self._sockets:
            sock.close()


def _group_socket(family: socket.AddressFamily) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        # Every daemon of this host hears the group.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Only what this very socket joined, not what others of this host did.
        sock.setsockopt(*_MULTICAST_ALL[family], 0)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        widen_receive_buffer(sock)
        sock.bind(("", PORT))
    except BaseException:
        sock.close()
        raise
    return sock


def _change(sock: socket.socket, address: str, interface: str, *, join: bool) -> None:
    if family_of(interface) != sock.family:
        raise OSError(errno.EAFNOSUPPORT, f"{interface} is of another family than group {address}")
    if sock.family == socket.AF_INET:
        how = socket.IP_ADD_MEMBERSHIP if join else socket.IP_DROP_MEMBERSHIP
        sock.setsockopt(socket.IPPROTO_IP, how, socket.inet_aton(address) + socket.inet_aton(interface))
    else:
        how = socket.IPV6_JOIN_GROUP if join else socket.IPV6_LEAVE_GROUP
        place = socket.inet_pton(socket.AF_INET6, address) + struct.pack("@I", _number(interface))
        sock.setsockopt(socket.IPPROTO_IPV6, how, place)


def _number(interface: str) -> int:
    return interface_number(interface, _ADDRESSES.read_text())
