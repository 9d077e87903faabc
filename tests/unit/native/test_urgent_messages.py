"""The class of a message is that of its datagrams, of those sent again, and of the connection that carries it; links of
higher rank are served first."""

import socket

import pytest

from ringcast import _core
from ringcast.model.priority import read
from ringcast.testing.bench import Publisher
from ringcast.transport import addressing
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


@pytest.fixture(params=["127.0.0.1", "::1"])
def stream(request):
    """A ring that is sent over a connection of class low: its writer, the sending and the receiving socket."""
    try:
        listener = socket.create_server(
            (request.param, 0), family=socket.AF_INET6 if ":" in request.param else socket.AF_INET
        )
    except OSError as exc:
        pytest.skip(f"this machine has no {request.param}: {exc}")
    publisher = Publisher(64, 1 << 20, 0.1)
    sending = socket.create_connection(listener.getsockname()[:2])
    addressing.mark(sending, read("low").marking)
    receiving, _ = listener.accept()
    receiving.settimeout(10)
    sending.setblocking(False)
    pump = _core.Pump(
        publisher.ring_fd, publisher.bell_fd, sending.fileno(), depth=publisher.depth,
        capacity_bytes=publisher.capacity_bytes, incarnation=publisher.ring, key=7, every=1, first_seq=0,
        reliable=False, stream=True,
    )  # fmt: skip
    yield publisher.writer, sending, receiving
    pump.close()
    publisher.close()
    for one in (sending, receiving, listener):
        one.close()


def marked(sock):
    """The code point and the queue's band that a connection has."""
    level, option = (
        (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
        if sock.family == socket.AF_INET6
        else (socket.IPPROTO_IP, socket.IP_TOS)
    )
    return sock.getsockopt(level, option) >> 2, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)


def taken(sock, size):
    found = b""
    while len(found) < HEADER + size:
        found += sock.recv(HEADER + size - len(found))
    return int.from_bytes(found[16:24], "little"), found[HEADER:]


def test_a_connection_has_the_class_of_the_message_that_it_carries(stream):
    writer, sending, receiving = stream
    own = marked(sending)
    assert own == (10, 2)
    cases = ((None, own), ("critical", (44, 6)), ("high", (36, 6)), ("normal", (0, 0)), ("low", (10, 2)), (None, own))
    for seq, (name, expected) in enumerate(cases):
        writer.send(b"%d" % seq, priority=name)
        assert taken(receiving, 1) == (seq, b"%d" % seq)
        assert marked(sending) == expected


def test_many_messages_of_mixed_classes_stay_in_order(stream):
    writer, _, receiving = stream
    names = (None, "critical", "low", None, None, "high")
    for seq in range(60):
        writer.send(bytes([seq]) * (1 + seq % 7), priority=names[seq % len(names)])
    assert [taken(receiving, 1 + seq % 7) for seq in range(60)] == [
        (seq, bytes([seq]) * (1 + seq % 7)) for seq in range(60)
    ]


def test_what_is_sent_again_has_the_class_that_it_had():
    key, chunk = 9, 1000
    receiver = Receiver("127.0.0.1")
    publisher = Publisher(64, 1 << 20, 0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.setblocking(False)
        repair = _core.Retransmitter(own.fileno())
        repair.open(
            publisher.ring_fd, publisher.bell_fd, depth=publisher.depth, capacity_bytes=publisher.capacity_bytes,
            incarnation=publisher.ring, key=key, every=1, first_seq=0, stages=["ordering", "nak"], tuning={},
            chunk=chunk, reliable=False, pumped=False, most_bytes_per_s=0, multicast="", loss=(0, 0, 0, 0, 0, 0),
        )  # fmt: skip
        repair.set_members(key, [(f"127.0.0.1:{receiver.port}", 0, False)])
        asking = _core.Receiving(["ordering", "nak"], key=key, me=0, seed=1, tuning={})
        classes = (None, "critical", "critical", "low", "high")
        for name in classes:
            publisher.writer.send(bytes(8), priority=name)
        found, now = {}, 0
        while len(found) < len(classes):
            data, control, _, _ = receiver.socket.recvmsg(65536, 64)
            now += 1_000_000_000
            if data[3] == 1:
                found[int.from_bytes(data[16:24], "little")] = control[0][2][0] >> 2
            else:
                actions = [*asking.on_datagram(data, now), *asking.tick(now + 500_000_000)]
                for action in actions:
                    if action[0] == "send":
                        receiver.socket.sendto(action[3], own.getsockname())
        assert found == dict(enumerate((0, 44, 44, 10, 36)))
        repair.close()
    publisher.close()
    receiver.socket.close()
