"""The class of a message is that of its datagrams, and links of higher rank are served first."""

import socket

import pytest

from ringcast.model.priority import read
from ringcast.testing.bench import Publisher
from ringcast.transport.addressing import connected_datagrams

_IP_RECVTOS, _IPV6_RECVTCLASS = 13, 66
HEADER = 48


class Receiver:
    def __init__(self, host):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.socket.settimeout(10)
        level, option = (
            (socket.IPPROTO_IPV6, _IPV6_RECVTCLASS) if family == socket.AF_INET6 else (socket.IPPROTO_IP, _IP_RECVTOS)
        )
        self.socket.setsockopt(level, option, 1)
        self.port = self.socket.getsockname()[1]

    def code_point(self):
        """Of the next datagram."""
        _, control, _, _ = self.socket.recvmsg(65536, 64)
        return control[0][2][0] >> 2


@pytest.fixture(params=["127.0.0.1", "::1"])
def way(request):
    try:
        receiver = Receiver(request.param)
    except OSError as exc:
        pytest.skip(f"this machine has no {request.param}: {exc}")
    publisher = Publisher(64, 1 << 20, 0.1)
    link = connected_datagrams(request.param, receiver.port, read("low").marking)
    publisher.add_link(1, link.fileno(), key=7, every=1, chunk=1000, first_seq=0)
    yield publisher.writer, receiver
    publisher.close()
    link.close()
    receiver.socket.close()


@pytest.mark.parametrize("size", [8, 1500, 20_000])
def test_a_message_has_its_own_class_or_its_channels(way, size):
    writer, receiver = way
    for name, code in ((None, 10), ("normal", 0), ("high", 36), ("critical", 44), ("low", 10), (None, 10)):
        writer.send(bytes(size), priority=name)
        pieces = -(-size // 1000)
        assert {receiver.code_point() for _ in range(pieces)} == {code}


def test_what_is_no_class_is_refused_and_nothing_is_sent(way):
    writer, _ = way
    for wrong in ("urgent", "", 3, b"high"):
        with pytest.raises(ValueError, match="'critical'"):
            writer.send(b"x", priority=wrong)
    assert writer.next_seq == 0


def test_a_class_beside_other_options(way):
    writer, receiver = way
    writer.send(b"x", 5, True, "high")
    writer.send_nowait(b"x", priority="critical")
    assert [receiver.code_point(), receiver.code_point()] == [36, 44]


def test_links_of_higher_rank_are_served_first():
    publisher = Publisher(64, 1 << 20, 0.1)
    receiver = Receiver("127.0.0.1")
    links = []
    for number, (name, rank) in enumerate((("", 0), ("low", -5), ("critical", 9), ("high", 7), ("EF", 7))):
        link = connected_datagrams("127.0.0.1", receiver.port, read(name).marking)
        publisher.add_link(number, link.fileno(), key=number, every=1, chunk=1000, first_seq=0, rank=rank)
        links.append(link)
    publisher.writer.send(b"x")
    assert [receiver.code_point() for _ in links] == [44, 36, 46, 0, 10]
    publisher.remove_link(3)
    publisher.writer.send(b"x")
    assert [receiver.code_point() for _ in links[1:]] == [44, 46, 0, 10]
    publisher.close()
    for one in (*links, receiver.socket):
        one.close()
