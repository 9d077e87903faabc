"""What waits for room in a socket: in order, with its descriptors, and no more than may."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from ringcast.client.outbox import Outbox, OutboxFull
from ringcast.control import link
from ringcast.control.requests import OpenTag, Unsubscribe


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield ours, theirs


def fill(outbox: Outbox, sock: socket.socket) -> int:
    """Send until one waits; how many were sent, that one too."""
    count = 0
    while outbox.send(sock, count, Unsubscribe(id=count, subscription=count)):
        count += 1
    return count + 1


def heard(sock: socket.socket) -> list[link.Received]:
    found = []
    while True:
        try:
            received = link.receive_request(sock)
        except BlockingIOError:
            return found
        assert received is not None
        found.append(received)


def test_what_waits_goes_out_in_order(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    outbox = Outbox()
    count = fill(outbox, ours)
    assert not outbox.send(ours, count, Unsubscribe(id=count, subscription=count)), "nobody overtakes"
    found = heard(theirs)
    assert outbox.flush(ours) == []
    assert [received.message.id for received in found + heard(theirs)] == list(range(count + 1))
    assert not outbox


def test_descriptors_that_wait_are_copies(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    outbox = Outbox()
    fill(outbox, ours)
    reading, writing = os.pipe()
    outbox.send(ours, 1, OpenTag(id=1, name="a"), [writing])
    os.close(writing)
    heard(theirs)
    outbox.flush(ours)
    received = heard(theirs)[-1]
    os.write(received.fds[0], b"x")
    received.close()
    assert os.read(reading, 2) == b"x"
    assert os.read(reading, 2) == b"", "no copy is left open"
    os.close(reading)


def test_more_than_may_wait_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    outbox = Outbox(max_packets=3)
    fill(outbox, ours)
    for number in (1, 2):
        outbox.send(ours, number, Unsubscribe(id=number, subscription=0))
    with pytest.raises(OutboxFull, match="3 requests"):
        outbox.send(ours, 3, Unsubscribe(id=3, subscription=0))
    outbox.clear()
    assert not outbox
