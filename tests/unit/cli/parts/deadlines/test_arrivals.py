"""The agent judges an application's own channel, and sees that nothing comes of what is sent."""

import time
from types import SimpleNamespace

import pytest

from ringcast import _core
from ringcast.cli.parts.deadlines.arrivals import Arrivals, Seen, counted
from ringcast.errors import PublisherGone

MS = 1_000_000


def row(received=0, lost=0, latency=(), *, number=1, pattern="t", pid=1):
    info = SimpleNamespace(id=number, pattern=pattern, pid=pid)
    return SimpleNamespace(info=info, counters={"received": received, "lost": lost}, latency=list(latency))


def histogram(**counts):
    """{"ms": how many} as the counters have it."""
    found = [0] * _core.LATENCY_BUCKETS
    for ms, count in counts.items():
        found[next(n for n in range(_core.LATENCY_BUCKETS) if _core.latency_bucket_ns(n) > int(ms[2:]) * MS)] += count
    return found


def test_late_and_lost_since_the_look_before():
    before = row(10, 1, histogram(ms1=8, ms50=2))
    now = row(30, 3, histogram(ms1=20, ms50=7, ms200=3))
    assert counted(before, now, 20 * MS) == Seen(22, 5 + 3 + 2)
    assert counted(before, now, 100 * MS) == Seen(22, 3 + 2)
    assert counted(now, row(), 20 * MS) == Seen()  # a daemon that started again counts from 0


class Tag:
    def __init__(self):
        self.rows, self.sent = [], 0
        self.asked = 0

    def subscribers(self, local):
        return self.rows

    def publishers(self):
        return [SimpleNamespace(info=SimpleNamespace(node=node)) for node in ("far", "here")]

    def history(self, publisher, at, encoded):
        assert publisher.node == "far"
        self.asked += 1
        return self

    def bounds(self):
        if self.sent is None:
            raise PublisherGone(1, "far")
        return 0, self.sent - 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def tag():
    return Tag()


@pytest.fixture
def arrivals(tag):
    session = SimpleNamespace(
        node="here", tags=lambda pattern: [SimpleNamespace(name="t")], tag=lambda name: tag, channels=list
    )
    return Arrivals(session, "t", 20 * MS)


def look(arrivals):
    return arrivals.look(time.monotonic())


def test_an_application_is_watched_by_its_own_counters(arrivals, tag):
    tag.rows = [row(5, 0, histogram(ms1=5)), row(0, 0, pattern="**", number=2)]
    assert look(arrivals) == {}
    tag.rows = [row(9, 0, histogram(ms1=6, ms50=3))]
    assert look(arrivals) == {"t": Seen(4, 3)}
    assert tag.asked <= 1  # of a stream that comes nobody is asked


def test_a_tag_of_which_nothing_comes_is_seen(arrivals, tag):
    tag.rows = [row(5)]
    tag.sent = 5
    assert look(arrivals) == {}
    tag.sent = 15
    assert look(arrivals) == {}
    tag.sent = 25
    assert look(arrivals) == {"t": Seen(10, 10)}
    tag.sent = 25
    assert look(arrivals) == {"t": Seen(10, 10)}
    assert look(arrivals) == {}  # nothing was sent


def test_what_has_just_been_sent_may_still_come(arrivals, tag):
    tag.rows = [row(5)]
    tag.sent = 5
    look(arrivals)
    tag.sent = 6
    assert look(arrivals) == {}
    tag.rows = [row(6, latency=histogram(ms1=1))]
    assert look(arrivals) == {"t": Seen(1, 0)}


def test_a_node_that_does_not_answer_says_nothing(arrivals, tag):
    tag.rows = [row(5)]
    tag.sent = None
    assert [look(arrivals) for _ in range(4)] == [{}] * 4
