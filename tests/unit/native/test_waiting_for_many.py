"""Mailboxes and eventfds, rung by publishers whom a daemon has told to."""

import select
from collections.abc import Callable
from typing import Any

import pytest

from ringcast import _core
from ringcast.errors import ClosedError
from ringcast.testing.waiting import PATIENCE_S, drained


def readable(fd: int, timeout: float = 0) -> bool:
    poll = select.poll()  # select knows no more than a thousand descriptors
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def drain(reader: _core.RingReader) -> list[bytes]:
    return [message.data for message in drained(reader)]


def test_publishers_ring_the_mailbox_they_were_told_of(make_ring: Any, announcer: Callable[[Any], Any]) -> None:
    rings = [make_ring() for _ in range(12)]
    reader = _core.RingReader()
    mailbox = reader.use_mailbox()
    assert reader.use_mailbox() == mailbox
    for ring in rings:
        ring.attach(reader)
        announcer(ring).add(1, mailbox)
    for round_ in range(3):
        for ring in rings:
            ring.send(b"%d" % round_)
        assert sorted(reader.recv(timeout=PATIENCE_S).data for _ in rings) == [b"%d" % round_] * 12


def test_message_sent_before_the_publisher_knew_is_found(ring: Any) -> None:
    reader = ring.reader()
    ring.send(b"early")
    reader.use_mailbox()
    assert reader.recv(timeout=PATIENCE_S).data == b"early"
    ring.send(b"nobody rang")
    reader.poke()  # as a session does when the daemon has told the publisher
    assert reader.recv(timeout=PATIENCE_S).data == b"nobody rang"


def test_eventfd_is_readable_while_there_is_something(ring: Any, announcer: Callable[[Any], Any]) -> None:
    bridge = _core.Bridge()
    reader = ring.reader()
    fd = reader.use_bridge(bridge)
    assert reader.use_bridge(bridge) == fd
    announcer(ring).add(7, bridge.mailbox_fd)
    assert drain(reader) == []
    assert not readable(fd)
    for _ in range(50):
        ring.writer.send_many([b"a", b"b", b"c"])
        assert readable(fd, PATIENCE_S)
        assert reader.recv_nowait().data == b"a"
        assert readable(fd)
        assert drain(reader) == [b"b", b"c"]
        while readable(fd):  # a second ring of the same bell may come late; it says nothing and goes quiet
            assert drain(reader) == []
    bridge.close()


@pytest.mark.parametrize("receive", ["recv", "recv_many"])
def test_eventfd_goes_quiet_when_a_receive_times_out(ring: Any, announcer: Callable[[Any], Any], receive: str) -> None:
    # Otherwise a loop of select and recv(timeout=0) would spin.
    bridge = _core.Bridge()
    reader = ring.reader()
    fd = reader.use_bridge(bridge)
    announcer(ring).add(7, bridge.mailbox_fd)
    ring.send(b"x")
    assert readable(fd, PATIENCE_S)
    while readable(fd):
        try:
            reader.recv(timeout=0) if receive == "recv" else reader.recv_many(5, timeout=0)
        except TimeoutError:
            pass
    assert reader.counters()["received"] == 1


def test_eventfd_shows_failure_and_close(ring: Any) -> None:
    bridge = _core.Bridge()
    reader = ring.reader()
    fd = reader.use_bridge(bridge)
    assert drain(reader) == []
    assert not readable(fd)
    reader.fail(KeyError("gone"))
    assert readable(fd)
    assert drain(reader) == []
    assert not readable(fd)
    reader.close()
    assert readable(fd)


def test_thousands_of_rings_some_sharing_a_bit(make_ring: Any, announcer: Callable[[Any], Any]) -> None:
    bridge = _core.Bridge()
    reader = _core.RingReader()
    rings = [make_ring(incarnation=1 + i + (i % 7) * _core.MAILBOX_BITS) for i in range(300)]
    rings += [make_ring(incarnation=1 + i + 9 * _core.MAILBOX_BITS) for i in range(100)]
    for ring in rings:
        ring.attach(reader)
        announcer(ring).add(1, bridge.mailbox_fd)
    fd = reader.use_bridge(bridge)
    for ring in rings:
        ring.send(b"x")
    received = 0
    while received < 400:
        assert readable(fd, PATIENCE_S)
        received += len(drain(reader))
    assert received == 400
    for ring in rings[:350]:
        reader.detach(ring.writer.incarnation, drain=False)
    for ring in rings:
        ring.send(b"y")
    received = 0
    while received < 50:
        assert readable(fd, PATIENCE_S)
        received += len(drain(reader))


def test_removed_mailbox_is_not_rung(ring: Any, announcer: Callable[[Any], Any]) -> None:
    daemon = announcer(ring)
    reader = ring.reader()
    daemon.add(1, reader.use_mailbox())
    ring.send(b"x")
    reader.recv(timeout=PATIENCE_S)
    before = ring.writer.counters()["wakes"]
    daemon.remove(1)
    for _ in range(5):
        ring.send(b"x")
    assert ring.writer.counters()["wakes"] == before


def test_garbage_announcements_are_skipped(ring: Any, announcer: Callable[[Any], Any]) -> None:
    daemon = announcer(ring)
    reader = ring.reader()
    for garbage in (b"x", b"\0" * 16, b"\1" + b"\0" * 15, b"\xff" * 16, b"\xff" * 40, b"\0" * 41, b"x" * 1000):
        daemon.socket.send(garbage)
    daemon.add(1, 0)  # not a mailbox
    daemon.add(2, reader.use_mailbox())
    ring.send(b"x")
    assert reader.recv(timeout=PATIENCE_S).data == b"x"


def test_fanout_socket_must_be_open(ring: Any) -> None:
    with pytest.raises(Exception, match="fan-out"):
        ring.writer.attach_fanout(-1)


def test_closed_bridge(ring: Any) -> None:
    bridge = _core.Bridge()
    bridge.close()
    bridge.close()
    with pytest.raises(ClosedError):
        bridge.mailbox_fd  # noqa: B018
    with pytest.raises(ClosedError):
        ring.reader().use_bridge(bridge)


def test_readers_outlive_the_bridge_object(ring: Any, announcer: Callable[[Any], Any]) -> None:
    bridge = _core.Bridge()
    reader = ring.reader()
    fd = reader.use_bridge(bridge)
    announcer(ring).add(1, bridge.mailbox_fd)
    del bridge
    drain(reader)
    ring.send(b"x")
    assert readable(fd, PATIENCE_S)
    assert drain(reader) == [b"x"]
