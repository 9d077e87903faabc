"""A right is taken away from a program that uses it: the ring that it holds carries nothing new, whatever it does, and
those who keep their rights miss nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from addresses import free_addresses
from outsiders import Outsider, RuledNode, needs_root

import ringcast
from ringcast import _core

pytestmark = needs_root

ALL = '[[rules]]\nuser = "nobody"\nmay = ["publish", "subscribe", "pull", "create"]\ntags = ["lab/**"]\n'


@pytest.fixture
def node() -> Iterator[RuledNode]:
    made = RuledNode(ALL)
    yield made
    made.close()


def forever(call: Callable[[], object]) -> None:
    """Until it raises: the daemon takes a moment to read its rules again."""
    while True:
        call()


def test_the_ring_that_a_reader_kept_carries_nothing_new(node: RuledNode, eventually: Callable[..., None]) -> None:
    session = node.session()
    tag = session.tag("lab/a")
    publisher, honest = tag.publisher(), tag.subscribe(reliable=True)
    outsider = node.outsider()
    outsider.hello()
    outsider.subscribe("lab/a")
    kept = outsider.reader()
    publisher.send(b"before")
    assert bytes(kept.recv(30).data) == b"before"
    assert bytes(honest.recv(30).data) == b"before"
    first = publisher.incarnation
    node.rule("")
    eventually(lambda: publisher.incarnation != first)
    for number in range(100):
        publisher.send(b"%d" % number)
    assert [bytes(honest.recv(30).data) for _ in range(100)] == [b"%d" % n for n in range(100)]
    with pytest.raises(TimeoutError):
        kept.recv(0)
    assert not [up for up, _ in outsider.rings if up.ring == publisher.incarnation]
    assert honest.stats().lost == 0
    outsider.close()


def test_one_who_unsubscribed_before_keeps_nothing_either(node: RuledNode, eventually: Callable[..., None]) -> None:
    publisher = node.session().tag("lab/a").publisher()
    outsider = node.outsider()
    outsider.hello()
    outsider.subscribe("lab/a")
    kept = outsider.reader()
    outsider.close()  # the mapping stays
    first = publisher.incarnation
    node.rule("")
    eventually(lambda: publisher.incarnation != first)
    publisher.send(b"new")
    with pytest.raises(TimeoutError):
        kept.recv(0)


def test_an_honest_program_is_told(node: RuledNode) -> None:
    publisher = node.session().tag("lab/a").publisher()
    tag = node.foreign_session().tag("lab/a")
    theirs, reading, history = tag.publisher(), tag.subscribe(), tag.history()
    publisher.send(b"x")
    assert bytes(reading.recv(30).data) == b"x"
    node.rule("")
    with pytest.raises(ringcast.NotAllowed, match="subscribe"):
        forever(lambda: reading.recv(30))
    with pytest.raises(ringcast.NotAllowed, match="publish"):
        forever(lambda: theirs.send(b"y"))
    with pytest.raises(ringcast.NotAllowed, match="pull"):
        forever(history.latest)
    with pytest.raises(ringcast.NotAllowed):
        tag.subscribe()


def test_nothing_is_read_of_a_publisher_that_lost_its_right(node: RuledNode, eventually: Callable[..., None]) -> None:
    session = node.session()
    reading = session.tag("lab/a").subscribe()
    theirs = node.foreign_session().tag("lab/a").publisher()
    forbidden: _core.RingWriter = theirs._ring
    send = _core.RingWriter.send
    send(forbidden, b"before")
    assert bytes(reading.recv(30).data) == b"before"
    node.rule("")
    eventually(lambda: not session.tag("lab/a").publishers())
    for _ in range(10):
        send(forbidden, b"after")  # past what the library forbids
    with pytest.raises(TimeoutError):
        reading.recv(0.05)


def test_those_who_keep_their_right_notice_nothing(node: RuledNode, eventually: Callable[..., None]) -> None:
    """Rules change, and the program's stay."""
    publisher = node.session().tag("lab/a").publisher()
    reading = node.foreign_session().tag("lab/a").subscribe()
    first = publisher.incarnation
    node.rule(ALL.replace("lab/**", "lab/*"))
    session = node.session()
    eventually(lambda: any("lab/*" in row.value for row in session.settings()))
    publisher.send(b"x")
    assert bytes(reading.recv(30).data) == b"x"
    assert publisher.incarnation == first


def test_the_mirror_that_a_reader_kept_carries_nothing_new(eventually: Callable[..., None]) -> None:
    """The publisher is on another node, whose rules say nothing of it."""
    here, there = free_addresses(2)
    alone = ("--no-scout", "--identity", "none")
    near = RuledNode(ALL, "--name", "near", "--listen", here, *alone)
    far = RuledNode("", "--name", "far", "--listen", there, "--peer", here, *alone)
    try:
        publisher, session = far.session().tag("lab/a").publisher(), near.session()
        eventually(lambda: any(row.name == "lab/a" and row.publishers for row in session.tags("**")))
        honest = session.subscribe("lab/a")  # as the outsider does: they share one mirror
        outsider = near.outsider()
        outsider.hello()
        outsider.subscribe("lab/a")
        eventually(lambda: mirror(near) is not None)
        publisher.send(b"before")
        assert bytes(honest.recv(30).data) == b"before"
        kept, first = outsider.reader(), mirror(near)
        near.rule("")
        eventually(lambda: mirror(near) not in (None, first))
        for number in range(100):
            publisher.send(b"%d" % number)
        assert [bytes(honest.recv(30).data) for _ in range(100)] == [b"%d" % n for n in range(100)]
        assert honest.stats().lost == 0
        while True:  # what it had before, and nothing else
            try:
                assert bytes(kept.recv(0).data) == b"before"
            except TimeoutError:
                break
        outsider.close()
    finally:
        far.close()
        near.close()


def mirror(node: RuledNode) -> int | None:
    """The ring that readers of the node are shown now, by its incarnation."""
    looker = Outsider(node.socket_path)
    looker.hello()
    looker.subscribe("lab/a")
    found = looker.rings[0][0].ring if looker.rings else None
    looker.close()
    return found
