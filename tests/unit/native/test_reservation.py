"""Writable room inside the ring."""

import gc
from typing import Any

import numpy as np
import pytest

from ringcast.errors import MessageTooLarge, ReservationError


def test_what_is_written_into_it_is_sent(ring: Any) -> None:
    reader = ring.reader()
    with ring.writer.reserve(5) as room:
        room[:] = b"hello"
    assert reader.recv().data == b"hello"


def test_by_hand(ring: Any) -> None:
    reader = ring.reader()
    reservation = ring.writer.reserve(8)
    assert len(reservation) == 8
    with memoryview(reservation) as room:
        assert not room.readonly
        room[:3] = b"abc"
    assert reservation.commit(3, event_ns=9, discardable=True) == 0
    message = reader.recv()
    assert (message.data, message.event_ns, message.discardable) == (b"abc", 9, True)


def test_numpy_writes_straight_into_the_ring(make_ring: Any) -> None:
    ring = make_ring(capacity_bytes=1 << 20)
    reader = ring.reader()
    reservation = ring.writer.reserve(80_000)
    array = np.frombuffer(reservation, dtype=np.float64)
    array[:] = np.arange(10_000)
    with pytest.raises(BufferError, match="views"):
        reservation.commit()
    del array
    reservation.commit()
    assert np.array_equal(np.frombuffer(reader.recv().data), np.arange(10_000.0))


def test_whole_ring_and_nothing(ring: Any) -> None:
    reader = ring.reader()
    with ring.writer.reserve(4096) as room:
        room[:] = b"x" * 4096
    assert reader.recv().data == b"x" * 4096
    with ring.writer.reserve(0) as room:
        assert len(room) == 0
    assert reader.recv().data == b""
    with pytest.raises(MessageTooLarge):
        ring.writer.reserve(4097)


def test_one_at_a_time(ring: Any) -> None:
    reservation = ring.writer.reserve(8)
    for use in (
        lambda: ring.send(b"x"),
        lambda: ring.writer.send_many([b"x"]),
        lambda: ring.writer.reserve(1),
        ring.writer.close,
    ):
        with pytest.raises(ReservationError):
            use()
    reservation.cancel()
    reservation.cancel()
    ring.send(b"x")
    ring.writer.close()


def test_used_up(ring: Any) -> None:
    reservation = ring.writer.reserve(8)
    reservation.commit()
    for use in (reservation.commit, reservation.__enter__):
        with pytest.raises(ReservationError):
            use()
    with pytest.raises(BufferError):
        memoryview(reservation)
    assert ring.writer.next_seq == 1


@pytest.mark.parametrize(
    ("length", "error"), [(9, ValueError), (-1, OverflowError), (2**70, OverflowError), ("3", TypeError)]
)
def test_commit_sends_no_more_than_was_reserved(ring: Any, length: Any, error: type[Exception]) -> None:
    reservation = ring.writer.reserve(8)
    with pytest.raises(error):
        reservation.commit(length)
    with pytest.raises(TypeError):
        reservation.commit(event_ns="soon")
    assert reservation.commit(8) == 0


def test_error_inside_with_gives_it_up(ring: Any) -> None:
    reader = ring.reader()
    with pytest.raises(KeyError), ring.writer.reserve(8) as room:
        room[0] = {}["nothing"]
    ring.send(b"next")
    message = reader.recv()
    assert (message.data, message.seq, message.lost) == (b"next", 0, 0)


def test_error_is_seen_although_views_are_left_over(ring: Any) -> None:
    kept = []

    def keep(view: memoryview) -> None:
        kept.append(view)
        raise KeyError

    with pytest.raises(KeyError), ring.writer.reserve(8) as room:
        keep(room[2:4])
    # Whoever holds a view may still write: the place is nobody else's until it is gone.
    with pytest.raises(ReservationError):
        ring.send(b"x")
    kept.clear()
    gc.collect()
    ring.send(b"x")


def test_views_left_over_at_the_end_of_with_are_an_error(ring: Any) -> None:
    reservation = ring.writer.reserve(8)
    kept = []
    with pytest.raises(BufferError), reservation as room:
        kept.append(room[2:4])
    kept.clear()
    del room
    reservation.commit()
    assert ring.writer.next_seq == 1


def test_cancel_waits_for_views_as_commit_does(ring: Any) -> None:
    reservation = ring.writer.reserve(8)
    view = memoryview(reservation)
    with pytest.raises(BufferError, match="views"):
        reservation.cancel()
    view.release()
    reservation.cancel()


def test_dropping_it_gives_it_up(ring: Any) -> None:
    ring.writer.reserve(8)
    gc.collect()
    ring.send(b"x")


def test_abandoned_with_block_is_collected(ring: Any) -> None:
    reservation = ring.writer.reserve(8)
    reservation.__enter__()  # and nobody ever leaves: it and its view hold each other
    del reservation
    gc.collect()
    ring.send(b"x")


def test_writer_lives_as_long_as_its_reservation(make_ring: Any) -> None:
    ring = make_ring()
    reader = ring.reader()
    reservation = ring.writer.reserve(3)
    del ring
    gc.collect()
    with reservation as room:
        room[:] = b"abc"
    assert reader.recv().data == b"abc"


def test_reservation_takes_the_place_of_the_oldest_at_once(make_ring: Any) -> None:
    ring = make_ring(capacity_bytes=4096)
    reader = ring.reader()
    for _ in range(4):
        ring.send(b"x" * 1024)
    reservation = ring.writer.reserve(2048)
    message = reader.recv()
    assert (message.seq, message.lost) == (2, 2)
    reservation.cancel()
    ring.send(b"small")
    assert [m.seq for m in reader.recv_many(9)] == [3, 4]
