"""Counters in shared memory: publishers', subscribers', and the latency histogram."""

import itertools
from typing import Any

import pytest

from ringcast import _core
from ringcast.errors import ClosedError, CorruptRing, ResourceLimit


def test_publisher_counts(ring: Any) -> None:
    monitor = ring.monitor()
    assert monitor.next_seq == 0
    ring.send(b"abc")
    ring.writer.send_many([b"de", b""])
    expected = {"sent": 3, "bytes": 5, "waits": 0, "overruns": 0, "wakes": 0}
    assert ring.writer.counters() == expected
    assert monitor.counters() == expected
    assert monitor.next_seq == ring.writer.next_seq == 3
    assert monitor.last_sent_ns() > 0
    monitor.close()
    monitor.close()
    for use in (
        monitor.counters,
        monitor.last_sent_ns,
        monitor.bump_fanout,
        lambda: monitor.free_slots(1),
        lambda: monitor.next_seq,
    ):
        with pytest.raises(ClosedError):
            use()


def test_subscriber_counts_where_others_can_see(make_ring: Any) -> None:
    page = _core.CounterPage(2)
    view = _core.CounterView(page.fd)
    ring = make_ring(depth=4)
    slot = page.take()
    reader = ring.reader(counters=slot)
    for _ in range(10):
        ring.send(b"abc")
    reader.recv_many(10)
    counted = {"received": 4, "lost": 6, "bytes": 12, "corrupt": 0}
    assert view.counters(slot.index) == counted
    assert reader.counters() == {**counted, "rings": 1}
    assert view.latency_histogram(slot.index) == reader.latency_histogram()
    assert sum(reader.latency_histogram()) == 4
    last = page.take()
    with pytest.raises(ResourceLimit):
        page.take()
    assert last.index != slot.index
    reader.close()
    slot.release()
    slot.release()
    assert page.take().index == slot.index
    assert view.counters(slot.index)["received"] == 0
    for index in (2, 2**32 - 1):
        with pytest.raises(IndexError):
            view.counters(index)
        with pytest.raises(IndexError):
            view.latency_histogram(index)


def test_counter_pages_have_sensible_sizes() -> None:
    for slots in (0, 2**32 - 1):
        with pytest.raises(ValueError, match="slots"):
            _core.CounterPage(slots)


def test_other_descriptors_are_no_counter_pages(ring: Any) -> None:
    for fd in (-1, 0, ring.writer.bell_fd + 1000):
        with pytest.raises(CorruptRing):
            _core.CounterView(fd)


def test_slot_dropped_is_slot_released() -> None:
    page = _core.CounterPage(1)
    for _ in range(3):
        page.take()


def test_reader_keeps_its_counters(ring: Any) -> None:
    reader = ring.reader(counters=_core.CounterPage(1).take())
    ring.send(b"x")
    reader.recv()
    assert reader.counters()["received"] == 1


def test_latency_buckets_grow() -> None:
    ends = [_core.latency_bucket_ns(i) for i in range(_core.LATENCY_BUCKETS)]
    assert ends[0] == 64
    assert all(a < b <= a * 1.3 for a, b in itertools.pairwise(ends))
    with pytest.raises(IndexError):
        _core.latency_bucket_ns(_core.LATENCY_BUCKETS)
