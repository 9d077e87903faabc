"""Drain: a publisher waits until its reliable readers are through with what it sent, and for nobody else. A reader is
through with a message when it asks for the next one."""

import contextlib
import threading

import pytest

import ringcast
from ringcast.testing.waiting import PATIENCE_S


@pytest.fixture
def tag(session):
    return session.tag("ledger", depth=64, max_wait_s=5.0)


def through(subscriber):
    """Receive what there is."""
    with contextlib.suppress(ringcast.WouldBlock):
        while True:
            subscriber.recv_nowait()


def test_it_waits_for_reliable_readers_alone(tag):
    pub, exact, casual = tag.publisher(), tag.subscribe(reliable=True), tag.subscribe()
    pub.drain(timeout=0)
    for number in range(10):
        pub.send(b"%d" % number)
    with pytest.raises(TimeoutError, match="has not read all"):
        pub.drain(timeout=0.01)
    assert len(exact.recv_many(10)) == 10
    with pytest.raises(TimeoutError):
        pub.drain(timeout=0)
    reader = threading.Thread(target=lambda: list(exact))
    reader.start()
    pub.drain(timeout=PATIENCE_S)
    exact.close()
    reader.join()
    assert casual.counters()["received"] == 0


def test_what_is_sent_later_is_not_waited_for(tag):
    pub, exact = tag.publisher(), tag.subscribe(reliable=True)
    pub.send(b"1")
    through(exact)
    pub.drain(timeout=0)
    pub.send(b"2")
    with pytest.raises(TimeoutError):
        pub.drain(timeout=0)


def test_a_reader_that_leaves_is_not_waited_for(tag):
    pub, exact = tag.publisher(), tag.subscribe(reliable=True)
    pub.send(b"1")
    exact.close()
    pub.drain(timeout=PATIENCE_S)


def test_a_reader_that_is_killed_is_not_waited_for(tag, program):
    reader = program(
        """
        import ringcast
        session = ringcast.connect()
        sub = session.tag("ledger").subscribe(reliable=True)
        print("ready", flush=True)
        input()
        """
    )
    pub = tag.publisher()
    reader.line()
    pub.send(b"1")
    with pytest.raises(TimeoutError):
        pub.drain(timeout=0)
    reader.kill()
    pub.drain(timeout=PATIENCE_S)


def test_a_session_drains_all_its_publishers(session, tag):
    pubs = [tag.publisher(), session.publisher("other")]
    exact, other = tag.subscribe(reliable=True), session.subscribe("other", reliable=True)
    for pub in pubs:
        pub.send(b"")
    through(exact)
    with pytest.raises(TimeoutError, match="other"):
        session.drain(timeout=0.01)
    through(other)
    session.drain(timeout=PATIENCE_S)


def test_a_reader_on_another_node_is_waited_for(make_mesh, eventually):
    a, b = make_mesh(2)
    pub = a.session.tag("far", max_wait_s=5.0).publisher()
    sub = b.session.tag("far").subscribe(reliable=True)
    pub.wait_for_subscribers(1, timeout=PATIENCE_S)
    for number in range(20):
        pub.send(b"%d" % number)
    assert [sub.recv(timeout=PATIENCE_S).data for _ in range(20)] == [b"%d" % number for number in range(20)]
    through(sub)
    pub.drain(timeout=PATIENCE_S)


def test_ends_are_told(session, connect, tag):
    pub, exact = tag.publisher(), tag.subscribe(reliable=True)
    pub.send(b"")
    connect().tag("ledger").destroy(force=True)
    with pytest.raises(ringcast.TagDestroyed):
        pub.drain(timeout=PATIENCE_S)
    exact.close()
    pub.close()
    with pytest.raises(ringcast.ClosedError):
        pub.drain()


def test_nothing_is_sent_where_it_would_wait(session):
    tag = session.tag("small", depth=2, max_wait_s=5.0)
    pub, exact = tag.publisher(), tag.subscribe(reliable=True)
    assert [pub.send_nowait(b"1"), pub.send_nowait(b"2")] == [0, 1]
    with pytest.raises(ringcast.WouldBlock, match="reliable reader"):
        pub.send_nowait(b"3")
    assert (pub.next_seq, pub.counters()["waits"]) == (2, 0)
    assert exact.recv(timeout=PATIENCE_S).data == b"1"
    assert pub.send_nowait(b"3") == 2
