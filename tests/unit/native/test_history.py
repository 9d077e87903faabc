"""Pull: the newest, the n-th newest, an absolute number, a range, over one ring and several."""

from typing import Any

import pytest

from ringcast import _core
from ringcast.errors import ClosedError, CorruptRing, Empty, HistoryError, NotYet, Overwritten


def test_empty(ring: Any) -> None:
    history = ring.history()
    assert history.bounds() == (0, -1)
    for pull in (history.latest, lambda: history.at(0)):
        with pytest.raises(Empty):
            pull()
    assert history.range(0, 100) == []


def test_newest_and_those_before(make_ring: Any) -> None:
    ring = make_ring(depth=8)
    for i in range(20):
        ring.send(b"%d" % i)
    history = ring.history(tag="lab/temp", publisher="me", decode=int)
    assert [history.latest(back).data for back in range(8)] == list(range(19, 11, -1))
    assert (history.latest().tag, history.latest().publisher, history.latest().lost) == ("lab/temp", "me", 0)
    with pytest.raises(Overwritten) as caught:
        history.latest(8)
    assert (caught.value.seq, caught.value.oldest, caught.value.newest) == (11, 12, 19)
    with pytest.raises(HistoryError, match="only 20"):
        history.latest(20)
    with pytest.raises(HistoryError):
        history.latest(2**64 - 1)


def test_absolute_numbers(make_ring: Any) -> None:
    ring = make_ring(depth=8)
    for i in range(20):
        ring.send(b"%d" % i)
    history = ring.history()
    assert history.bounds() == (12, 19)
    assert [history.at(seq).data for seq in range(12, 20)] == [b"%d" % i for i in range(12, 20)]
    for seq in (0, 11):
        with pytest.raises(Overwritten) as caught:
            history.at(seq)
        assert (caught.value.seq, caught.value.oldest, caught.value.newest) == (seq, 12, 19)
    for seq in (20, 2**64 - 1):
        with pytest.raises(NotYet) as not_yet:
            history.at(seq)
        assert (not_yet.value.seq, not_yet.value.newest) == (seq, 19)


def test_range_holds_what_is_left_and_counts_what_is_not(make_ring: Any) -> None:
    ring = make_ring(depth=8)
    for _ in range(20):
        ring.send(b"x")
    history = ring.history()
    assert [m.seq for m in history.range(14, 16)] == [14, 15, 16]
    assert [(m.seq, m.lost) for m in history.range(10, 13)] == [(12, 2), (13, 0)]
    assert [m.seq for m in history.range(18, 2**64 - 1)] == [18, 19]
    assert history.range(16, 14) == []
    assert history.range(0, 11) == []
    assert history.range(20, 30) == []


def test_limit_shows_only_the_newest(make_ring: Any) -> None:
    ring = make_ring(depth=16)
    history = ring.history(limit=3)
    for seq in range(10):
        ring.send(b"x")
        assert history.bounds() == (max(0, seq - 2), seq)
    assert [history.latest(back).seq for back in range(3)] == [9, 8, 7]
    for pull in (lambda: history.latest(3), lambda: history.at(6)):
        with pytest.raises(Overwritten):
            pull()
    assert [m.seq for m in history.range(0, 100)] == [7, 8, 9]


def test_several_publishers_are_merged_by_send_time(make_ring: Any) -> None:
    rings = [make_ring() for _ in range(3)]
    history = _core.RingHistory()
    for ring in rings:
        assert history.attach(ring.writer.ring_fd, **ring.grant, publisher=ring)
    assert history.attach(rings[0].writer.ring_fd, **rings[0].grant) is False
    with pytest.raises(Empty):
        history.latest()
    sent = []
    for i in range(30):
        rings[i % 3].send(b"%d" % i)
        sent.append(b"%d" % i)
    assert [history.latest(back).data for back in range(30)] == sent[::-1]
    with pytest.raises(HistoryError, match="30"):
        history.latest(30)
    for pull in (lambda: history.at(0), lambda: history.range(0, 1), history.bounds):
        with pytest.raises(HistoryError, match="publisher="):
            pull()
    assert history.at(3, rings[1].writer.incarnation).data == b"10"
    assert history.bounds(rings[1].writer.incarnation) == (0, 9)
    with pytest.raises(HistoryError, match="no history here"):
        history.bounds(5)
    assert history.incarnations == [ring.writer.incarnation for ring in rings]
    assert history.detach(rings[0].writer.incarnation)
    assert not history.detach(rings[0].writer.incarnation)
    assert history.latest().data == b"29"
    assert history.latest(1).data == b"28"
    assert history.latest(2).data == b"26"


def test_nobody_publishes() -> None:
    history = _core.RingHistory()
    for pull in (history.latest, lambda: history.at(0), lambda: history.range(0, 1), history.bounds):
        with pytest.raises(Empty, match="nobody"):
            pull()


def test_while_a_reservation_covers_everything(ring: Any) -> None:
    for _ in range(4):
        ring.send(b"x")
    history = ring.history()
    reservation = ring.writer.reserve(4096)
    assert history.bounds() == (4, 3)
    with pytest.raises(Overwritten):
        history.at(3)
    with pytest.raises(NotYet):
        history.at(4)
    with pytest.raises(Overwritten):
        history.latest(1)
    with pytest.raises(Empty):
        history.latest()
    assert history.range(0, 10) == []
    reservation.commit()
    assert history.bounds() == (4, 4)
    assert len(history.latest().data) == 4096


def test_decoder_that_raises(ring: Any) -> None:
    history = ring.history(decode=lambda data: 1 // int(data))
    for data in (b"1", b"0"):
        ring.send(data)
    with pytest.raises(ZeroDivisionError):
        history.latest()
    assert history.latest(1).data == 1
    with pytest.raises(ZeroDivisionError):
        history.range(0, 1)


def test_history_outlives_its_publisher(make_ring: Any) -> None:
    ring = make_ring()
    history = ring.history()
    ring.send(b"x")
    ring.writer.close()
    assert history.latest().data == b"x"


def test_closed(ring: Any) -> None:
    history = ring.history()
    history.close()
    history.close()
    assert history.closed
    for use in (
        history.latest,
        lambda: history.at(0),
        lambda: history.range(0, 0),
        history.bounds,
        lambda: history.detach(1),
    ):
        with pytest.raises(ClosedError, match="history"):
            use()


def test_grant_that_does_not_fit_the_ring_is_refused(ring: Any) -> None:
    for wrong in ({"incarnation": 1}, {"depth": 1000}, {"capacity_bytes": 8192}):
        with pytest.raises(CorruptRing):
            _core.RingHistory().attach(ring.writer.ring_fd, **{**ring.grant, **wrong})
        with pytest.raises(CorruptRing):
            _core.RingReader().attach(ring.writer.ring_fd, ring.writer.bell_fd, **{**ring.grant, **wrong})
        with pytest.raises(CorruptRing):
            _core.RingMonitor(ring.writer.ring_fd, ring.writer.bell_fd, **{**ring.grant, **wrong})
    for ring_fd, bell_fd in (
        (ring.writer.bell_fd, ring.writer.bell_fd),
        (ring.writer.ring_fd, ring.writer.ring_fd),
        (0, 0),
        (-1, -1),
    ):
        with pytest.raises(CorruptRing):
            _core.RingReader().attach(ring_fd, bell_fd, **ring.grant)
