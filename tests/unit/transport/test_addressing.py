import socket

import pytest

from ringcast.model.priority import Marking, read
from ringcast.transport.addressing import mark, marking_of


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_marked_and_back_to_normal(family, kind):
    with socket.socket(family, kind) as sock:
        for name in ("high", "critical", "low", "EF", "normal"):
            wanted = read(name).marking
            mark(sock, wanted)
            assert marking_of(sock) == wanted
        assert marking_of(sock) == Marking(0, 0)
    assert marking_of(sock) is None


def test_packets_of_an_ipv6_socket_to_ipv4_addresses_are_marked_too():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        mark(sock, read("high").marking)
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 36 << 2
