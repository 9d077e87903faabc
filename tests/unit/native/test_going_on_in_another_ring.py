"""A publisher whose ring somebody may not read any more goes on in another one."""

from __future__ import annotations

import pytest

from ringcast import _core
from ringcast.errors import ClosedError, ReservationError


def writer() -> _core.RingWriter:
    return _core.RingWriter(depth=16, capacity_bytes=65536)


def reader(of: _core.RingWriter, *, reliable: bool = False) -> _core.RingReader:
    made = _core.RingReader(reliable=reliable)
    made.attach(
        of.ring_fd, of.bell_fd, depth=of.depth, capacity_bytes=of.capacity_bytes, incarnation=of.incarnation,
        start=_core.START_EARLIEST,
    )  # fmt: skip
    return made


def test_who_reads_the_old_ring_gets_nothing_new() -> None:
    publisher, other = writer(), writer()
    old, new, incarnation = reader(publisher), reader(other), other.incarnation
    publisher.send(b"before")
    publisher.take_over(other)
    assert publisher.incarnation == incarnation
    assert publisher.send(b"after") == 0
    assert bytes(old.recv(0).data) == b"before"
    with pytest.raises(TimeoutError):
        old.recv(0)
    assert bytes(new.recv(0).data) == b"after"
    with pytest.raises(ClosedError):
        other.send(b"x")


def test_a_reservation_is_written_where_it_was_made() -> None:
    publisher, other = writer(), writer()
    old, new = reader(publisher), reader(other)
    with publisher.reserve(3) as view:
        view[:] = b"old"
        publisher.take_over(other)
        with pytest.raises(ReservationError):
            publisher.send(b"x")
    publisher.send(b"new")
    assert bytes(old.recv(0).data) == b"old"
    assert bytes(new.recv(0).data) == b"new"


def test_a_cancelled_reservation_leaves_nothing_in_the_old_ring() -> None:
    publisher, other = writer(), writer()
    old, new = reader(publisher), reader(other)
    reservation = publisher.reserve(3)
    publisher.take_over(other)
    reservation.cancel()
    publisher.send(b"new")
    assert bytes(new.recv(0).data) == b"new"
    with pytest.raises(TimeoutError):
        old.recv(0)


def test_what_reliable_readers_have_not_read_of_the_old_ring_is_known() -> None:
    publisher, other = writer(), writer()
    old = reader(publisher, reliable=True)
    for _ in range(3):
        publisher.send(b"x")
    publisher.take_over(other)
    assert publisher.unread_before == 3
    assert len(old.recv_many(3, 0)) == 3
    with pytest.raises(TimeoutError):
        old.recv(0)  # asks for the next one: it is through with those before
    assert publisher.unread_before == 0


def test_a_ring_is_taken_over_from_another() -> None:
    publisher = writer()
    with pytest.raises(ValueError, match="own ring"):
        publisher.take_over(publisher)


def test_a_drained_ring_ends_where_it_was_said_to() -> None:
    publisher = writer()
    old = reader(publisher)
    publisher.send(b"a")
    old.detach(publisher.incarnation, drain=True, end=1)
    publisher.send(b"b")
    assert bytes(old.recv(0).data) == b"a"
    with pytest.raises(TimeoutError):
        old.recv(0)
