"""Programs that connect, ask, create and publish without end: each is refused or slowed down, it is counted, and a
reliable stream beside them stays complete."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from outsiders import Outsider, RuledNode

import ringcast
from ringcast.control.answers import Refused
from ringcast.control.requests import GetStatus, OpenTag
from ringcast.testing.waiting import PATIENCE_S, wait_until

LIMITS = """
[limits]
user_connections = 20
requests_per_s = 200
user_tags = 3
user_rings = 5
user_memory = "8M"
"""


@pytest.fixture
def node() -> Iterator[RuledNode]:
    made = RuledNode(LIMITS)
    yield made
    made.close()


def actions(node: RuledNode) -> str:
    return node.audit.read_text() if node.audit.exists() else ""


def connected(stack: contextlib.ExitStack, node: RuledNode) -> None:
    sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    sock.connect(node.socket_path)


def test_connections_without_end(node: RuledNode, eventually: Callable[..., None]) -> None:
    session = node.session()
    tag = session.tag("a")
    publisher, reading = tag.publisher(), tag.subscribe(reliable=True)
    with contextlib.ExitStack() as stack:
        for number in range(500):
            connected(stack, node)
            publisher.send(b"%d" % number)
        assert [bytes(reading.recv(PATIENCE_S).data) for _ in range(500)] == [b"%d" % n for n in range(500)]
    assert '"action":"connect"' in actions(node)
    eventually(lambda: session.status().clients == 1)


def test_one_connection_too_many_is_told_why(node: RuledNode) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            connected(stack, node)
        with pytest.raises(ringcast.ResourceLimit, match="20 connections of one user"):
            node.session()

    def is_alone() -> bool:
        try:
            with ringcast.connect(node.socket_path, start=False) as session:
                return session.status().clients == 1
        except ringcast.ResourceLimit:
            return False

    wait_until(is_alone)  # the daemon learns that they are gone


def test_requests_without_end(node: RuledNode) -> None:
    session = node.session()
    tag = session.tag("a")
    publisher, reading = tag.publisher(), tag.subscribe(reliable=True)
    flooder = Outsider(node.socket_path)
    flooder.hello()
    answered = 0

    def flood() -> None:
        nonlocal answered
        for number in range(700):
            flooder.ask(GetStatus(id=1000 + number))
            answered += 1

    flooding = threading.Thread(target=flood)
    flooding.start()
    for number in range(300):
        publisher.send(b"%d" % number)
        assert bytes(reading.recv(PATIENCE_S).data) == b"%d" % number
    flooding.join()
    flooder.close()
    assert answered == 700  # slowed down, and not refused
    assert reading.stats().lost == 0


def test_tags_and_rings_without_end(node: RuledNode) -> None:
    session = node.session()
    for number in range(3):
        session.tag(f"t{number}")
    with pytest.raises(ringcast.ResourceLimit, match="3 tags of one user"):
        session.tag("t3")
    session.tag("t0").destroy()
    session.tag("t3", capacity_bytes=65536)
    made = [session.tag("t3").publisher() for _ in range(5)]
    with pytest.raises(ringcast.ResourceLimit, match="5 publishers of one user"):
        session.tag("t3").publisher()
    made.pop().close()
    made.append(session.tag("t3").publisher())
    for publisher in made:
        publisher.close()
    first = session.tag("t1").publisher()
    with pytest.raises(ringcast.ResourceLimit, match="bytes of rings of one user"):
        session.tag("t1").publisher()
    first.send(b"x")
    assert '"action":"create"' in actions(node)


def test_another_programs_limits_are_its_own(node: RuledNode) -> None:
    """What one asks for in vain costs the next one nothing."""
    one, other = Outsider(node.socket_path), Outsider(node.socket_path)
    one.hello()
    other.hello()
    for number in range(3):
        one.ask(OpenTag(id=10 + number, name=f"x{number}"))
    refused = one.ask(OpenTag(id=20, name="x4"))
    assert isinstance(refused, Refused)
    assert refused.error == "ResourceLimit"
    assert not isinstance(other.ask(OpenTag(id=30, name="x1")), Refused)
    one.close()
    other.close()
