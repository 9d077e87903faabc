"""Packets and descriptors over a real socket pair: what arrives, and that nothing leaks when it is wrong."""

from __future__ import annotations

import array
import os
import resource
import socket
from collections.abc import Iterator

import pytest

from ringcast.control import link
from ringcast.control.answers import Done
from ringcast.control.framing import MAX_DESCRIPTORS, MAX_PACKET_BYTES
from ringcast.control.requests import GetStatus, Hello
from ringcast.errors import BadMessage

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def open_fds() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def send_raw(sock: socket.socket, packet: bytes, fds: list[int]) -> None:
    sock.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def test_a_message_and_its_descriptors_arrive(pair: Pair) -> None:
    link.send(pair[0], Hello(id=7, program="p"), [0, 1])
    received = link.receive_request(pair[1])
    assert received is not None
    assert received.message == Hello(id=7, program="p")
    assert len(received.fds) == 2
    assert received.limit is None
    assert not any(os.get_inheritable(fd) for fd in received.fds)
    received.close()
    assert received.fds == []


def test_replies_and_requests_are_not_mixed_up(pair: Pair) -> None:
    link.send(pair[0], Done(id=3))
    received = link.receive_reply(pair[1])
    assert received is not None
    assert received.message == Done(id=3)
    link.send(pair[0], Done(id=3))
    with pytest.raises(BadMessage):
        link.receive_request(pair[1])


def test_end_of_file_is_none(pair: Pair) -> None:
    pair[0].close()
    assert link.receive_request(pair[1]) is None
    assert link.receive_reply(pair[1]) is None


@pytest.mark.parametrize("receive", [link.receive_request, link.receive_reply])
def test_descriptors_beside_garbage_are_closed(pair: Pair, receive: object) -> None:
    before = open_fds()
    send_raw(pair[0], b"garbage", [0, 1, 2])
    with pytest.raises(BadMessage):
        receive(pair[1])  # type: ignore[operator]
    assert open_fds() == before


def test_too_many_descriptors_are_closed(pair: Pair) -> None:
    before = open_fds()
    send_raw(pair[0], b"\x81", [0] * (MAX_DESCRIPTORS + 1))
    with pytest.raises(BadMessage, match="descriptors of one packet"):
        link.receive_request(pair[1])
    assert open_fds() == before
    with pytest.raises(BadMessage, match="descriptors"):
        link.send(pair[0], GetStatus(id=1), [0] * (MAX_DESCRIPTORS + 1))


def test_a_packet_that_is_too_long(pair: Pair) -> None:
    before = open_fds()
    send_raw(pair[0], bytes(MAX_PACKET_BYTES + 1), [0])
    with pytest.raises(BadMessage, match="more than the 65536 bytes"):
        link.receive_request(pair[1])
    assert open_fds() == before


def test_no_room_for_descriptors_is_said_with_the_message(pair: Pair) -> None:
    link.send(pair[0], GetStatus(id=9), [0, 1, 2])
    before = open_fds()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(fd) for fd in before)
    holes = [os.open("/dev/null", os.O_RDONLY) for _ in range(highest - len(before) + 1)]  # fill the gaps below
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max([highest, *holes]) + 2, hard))
        received = link.receive_request(pair[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        link.close_all(holes)
    assert received is not None
    assert received.message == GetStatus(id=9)
    assert received.fds == []
    assert received.limit is not None
    assert "ulimit -n" in str(received.limit)
    assert open_fds() == before


def test_a_full_socket_does_not_block(pair: Pair) -> None:
    pair[0].setblocking(False)

    def send_without_end() -> None:
        while True:
            link.send(pair[0], GetStatus(id=1))

    with pytest.raises(BlockingIOError):
        send_without_end()


def test_a_peer_that_is_gone(pair: Pair) -> None:
    pair[1].close()
    with pytest.raises(BrokenPipeError):
        link.send(pair[0], GetStatus(id=1))
