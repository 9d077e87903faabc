"""Addresses of groups, and the interfaces on which they are joined, of both families."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.transport import multicast

SCOPES = {"10.0.0.1": "239.192.0.0/14", "fd00::1": "ff15::/16", "fe80::1": "ff12::/16", "": "239.192.0.0/14"}
LISTING = """\
fd000000000000000000000000000002 1a 40 00 80   to-hub
fe8000000000000000c0fffffe000001 1a 40 20 80   to-hub
00000000000000000000000000000001 01 80 10 80       lo
"""


@given(st.integers(0, 2**62), st.sampled_from(sorted(SCOPES)))
def test_a_group_lies_in_the_scope_of_its_nodes(number: int, local: str) -> None:
    address = ipaddress.ip_address(multicast.group_address(number, set(), local))
    assert address.is_multicast
    assert address in ipaddress.ip_network(SCOPES[local])
    if address.version == 6:
        # The range that hosts may allocate, RFC 3307: the lower half is assigned.
        assert int(address) & 0xFFFFFFFF >= 0x80000000


@pytest.mark.parametrize("local", ["10.0.0.1", "fd00::1"])
def test_addresses_that_are_taken_are_left_alone(local: str) -> None:
    taken: set[str] = set()
    for _ in range(50):
        address = multicast.group_address(7, taken, local)
        assert address not in taken
        taken.add(address)


@pytest.mark.parametrize("address", ["239.192.1.2", "ff15::8000:1"])
def test_with_and_without_a_port(address: str) -> None:
    assert multicast.without_port(multicast.with_port(address)) == address


def test_an_interface_is_known_by_its_address() -> None:
    assert multicast.interface_number("fd00::2", LISTING) == 0x1A
    assert multicast.interface_number("fe80::c0:ffff:fe00:1%to-hub", LISTING) == 0x1A
    assert multicast.interface_number("::1", LISTING) == 1
    with pytest.raises(OSError, match="fd00::9"):
        multicast.interface_number("fd00::9", LISTING)


@pytest.mark.parametrize(
    ("address", "interface", "reason"),
    [
        ("239.192.1.2", "::1", "another family"),
        ("ff15::8000:1", "127.0.0.1", "another family"),
        ("10.1.2.3", "127.0.0.1", "Invalid argument"),
    ],
)
def test_what_cannot_be_joined_is_an_os_error(address: str, interface: str, reason: str) -> None:
    sockets = multicast.GroupSockets()
    try:
        with pytest.raises(OSError, match=reason):
            sockets.join(address, interface)
    finally:
        sockets.close()


def loopback_has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("local", ["127.0.0.1", "::1"])
def test_groups_are_joined_once_and_left(local: str) -> None:
    if local == "::1" and not loopback_has_ipv6():
        pytest.skip("this kernel has no IPv6")
    sockets = multicast.GroupSockets()
    try:
        groups = [multicast.group_address(number, set(), local) for number in range(multicast.MEMBERSHIPS + 1)]
        assert sockets.join(groups[0], local) is not None
        assert sockets.join(groups[0], local) is None
        opened = [sockets.join(group, local) for group in groups[1:]]
        assert sum(sock is not None for sock in opened) == 1, "twenty to a socket"
        sockets.leave(groups[0], local)
        sockets.leave(groups[0], local)
    finally:
        sockets.close()
