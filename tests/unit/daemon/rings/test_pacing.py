"""Measuring publishers in their rings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ringcast import _core
from ringcast.daemon.rings.pacing import Paces, measured_hz

SECOND = 1_000_000_000


class FakeRing:
    """A ring whose messages were sent when the test says."""

    def __init__(self, incarnation=7):
        self.writer = _core.StageWriter(depth=4096, capacity_bytes=1 << 16)
        self.info = SimpleNamespace(incarnation=incarnation)
        self.row = SimpleNamespace(depth=self.writer.depth, capacity_bytes=self.writer.capacity_bytes)
        self.files = (SimpleNamespace(open=lambda: SimpleNamespace(fileno=lambda: self.writer.ring_fd)),)
        self.ring = self.writer.incarnation
        self._seq = self._now_ns = 0

    def send(self, count, hz):
        for _ in range(count):
            self._now_ns += int(SECOND / hz)
            self.writer.put(b"x", seq=self._seq, event_ns=0, sent_ns=self._now_ns)
            self._seq += 1


def test_a_ring_tells_its_publishers_rate():
    ring = FakeRing()
    assert measured_hz(ring) == 0
    ring.send(1, 30)
    assert measured_hz(ring) == 0
    ring.send(3000, 500)
    assert measured_hz(ring) == pytest.approx(500, rel=0.01)
    ring.send(30, 10)
    assert measured_hz(ring) == pytest.approx(10, rel=0.05)


def test_a_factor_is_measured_once_and_followed_when_asked():
    ring, paces = FakeRing(), Paces()
    ring.send(300, 100)
    assert paces.every(ring, 20.0) == 5
    ring.send(600, 200)
    assert paces.every(ring, 20.0) == 5
    assert paces.follow(ring, 20.0) == paces.every(ring, 20.0) == 10
    assert paces.every(ring, 50.0) == 4


def test_the_first_who_asks_is_noticed_and_so_is_the_first_after_a_rest():
    calls = []
    ring, paces = FakeRing(), Paces(lambda: calls.append(1))
    paces.every(ring, 20.0)
    paces.every(FakeRing(8), 20.0)
    assert len(calls) == 1
    paces.keep({8})
    paces.every(ring, 20.0)
    assert len(calls) == 1
    paces.keep(set())
    paces.every(ring, 20.0)
    assert len(calls) == 2
