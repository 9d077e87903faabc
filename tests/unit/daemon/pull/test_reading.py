"""Pulls from real rings: dense ones as publishers write, and ones with gaps, as mirrors have them."""

from __future__ import annotations

import pytest

from ringcast import _core
from ringcast.control.service import Head, Pull
from ringcast.daemon.pull import reading
from ringcast.daemon.pull.reading import Held, limit_of, nth_newest, read, step_of, walk, whose
from ringcast.errors import Empty, HistoryError, MessageTooLarge, NotYet, Overwritten
from ringcast.model.identity import PublisherInfo


def info(number: int = 1) -> PublisherInfo:
    return PublisherInfo(id=number, node="n", tag="t", incarnation=100 + number, pid=1, user="u")


class FakeMessage:
    def __init__(self, seq: int, sent_ns: int) -> None:
        self.seq, self.sent_ns, self.event_ns = seq, sent_ns, 0
        self.data, self.discardable = str(seq).encode(), False


class Gappy:
    """A mirror that lost some, with the interface of a RingHistory."""

    def __init__(self, *numbers: int, time_of=lambda seq: 1000 * (seq + 1)) -> None:
        self.numbers = list(numbers)
        self._time_of = time_of

    def latest(self, back=0, copy=True):
        if not self.numbers:
            raise Empty
        if back >= len(self.numbers):
            raise HistoryError("not so far back")
        return FakeMessage(self.numbers[-1 - back], self._time_of(self.numbers[-1 - back]))

    def at(self, seq, incarnation=0, copy=True):
        if not self.numbers:
            raise Empty
        if seq > self.numbers[-1]:
            raise NotYet(seq, self.numbers[-1])
        if seq not in self.numbers:
            raise Overwritten(seq, self.numbers[0], self.numbers[-1])
        return FakeMessage(seq, self._time_of(seq))

    def range(self, first, last, incarnation=0):
        return [self.at(seq) for seq in self.numbers if first <= seq <= last]

    def bounds(self, incarnation=0):
        return (self.numbers[0], self.numbers[-1]) if self.numbers else (0, -1)


def held(*numbers: int, step: int = 1, number: int = 1, alive: bool = True, large: bool = False, **how) -> Held:
    return Held(info(number), alive, step, Gappy(*numbers, **how), 2**30 if large else 2**10)


def pull(*rings: Held, kind: str, **fields):
    return read(rings, Pull(tag="t", kind=kind, **fields))


def numbers(answer) -> list[int]:
    return [message.seq for message in answer.messages]


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        (held(), []),
        (held(0), [0]),
        (held(3, 4, 5), [5, 4, 3]),
        (held(3, 7, 8, 100), [100, 8, 7, 3]),
        (held(4, 8, 12, 1000, step=4), [1000, 12, 8, 4]),
        (held(3, 5, 6, 9, 10, step=3), [9, 6, 3]),
        (held(5, 7, step=3), []),
    ],
)
def test_walking_back_over_gaps(ring, expected):
    assert [head.seq for head in walk(ring)] == expected


def test_walking_back_in_a_ring_of_a_publisher():
    writer = _core.RingWriter(depth=8, capacity_bytes=4096)
    history = _core.RingHistory()
    history.attach(writer.ring_fd, depth=8, capacity_bytes=4096, incarnation=writer.incarnation)
    ring = Held(info(), True, 3, history, 4096)
    assert list(walk(ring)) == []
    for i in range(20):
        writer.send(b"%d" % i)
    assert [head.seq for head in walk(ring)] == [18, 15, 12]
    answer = pull(ring, kind="range", first=0, last=2**64 - 1)
    assert [(message.seq, message.lost, message.payload) for message in answer.messages] == [
        (12, 4, b"12"), (15, 0, b"15"), (18, 0, b"18"),
    ]  # fmt: skip
    assert numbers(pull(ring, kind="latest", first=1)) == [15]
    writer.close()


@pytest.mark.parametrize("large", [False, True])
def test_lost_counts_only_what_was_due(large):
    answer = pull(held(4, 8, 20, step=4, large=large), kind="range", first=1, last=100)
    assert [(message.seq, message.lost) for message in answer.messages] == [(4, 0), (8, 0), (20, 2)]


@pytest.mark.parametrize("large", [False, True])
def test_a_range_too_long_for_one_answer_goes_on(monkeypatch, large):
    monkeypatch.setattr(reading, "PAGE_MESSAGES", 2)
    ring = held(1, 2, 5, 6, 7, large=large)
    first = pull(ring, kind="range", first=0, last=9)
    assert [(message.seq, message.lost) for message in first.messages] == [(1, 1), (2, 0)]
    second = pull(ring, kind="range", first=first.following, last=9)
    assert [(message.seq, message.lost) for message in second.messages] == [(5, 2), (6, 0)]
    third = pull(ring, kind="range", first=second.following, last=9)
    assert (numbers(third), third.following) == ([7], None)


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("large", [False, True])
def test_ranges_over_gaps(step, large):
    numbers_held = [3, 4, 9, 10, 11, 30, 33, 100]
    for first in range(0, 110, 7):
        for last in range(first, 110, 11):
            ring = held(*numbers_held, step=step, large=large)
            due = [seq for seq in numbers_held if first <= seq <= last and seq % step == 0]
            assert numbers(pull(ring, kind="range", first=first, last=last)) == due


def test_bytes_end_a_page_too(monkeypatch):
    monkeypatch.setattr(reading, "PAGE_BYTES", 1)
    assert numbers(pull(held(1, 2), kind="range", first=0, last=9)) == [1]
    monkeypatch.setattr(reading, "MAX_MESSAGE_BYTES", 1)
    with pytest.raises(MessageTooLarge):
        pull(held(10), kind="at", first=10)


def test_the_newest_of_several_rings():
    rings = held(0, 1, 2), held(0, 1, number=2, time_of=lambda seq: 2500 + seq)
    found = [pull(*rings, kind="latest", first=back).messages[0] for back in range(5)]
    assert [(message.incarnation, message.seq) for message in found] == [
        (101, 2), (102, 1), (102, 0), (101, 1), (101, 0),
    ]  # fmt: skip
    with pytest.raises(HistoryError, match="holds 5"):
        pull(*rings, kind="latest", first=5)
    with pytest.raises(Empty):
        pull(held(), held(number=2), kind="latest")


def test_by_time():
    ring = held(0, 1, 2, 3)
    assert numbers(pull(ring, kind="before", last=2999)) == [1]
    assert numbers(pull(ring, kind="before", last=3000)) == [2]
    with pytest.raises(HistoryError, match="was sent by"):
        pull(ring, kind="before", last=999)
    [span] = pull(ring, kind="span", first=1500, last=3000).bounds
    assert (span.oldest, span.newest) == (1, 2)
    assert pull(ring, kind="span", first=5000, last=9000).bounds == []


def test_bounds_are_of_the_scaled_stream():
    for ring, expected in [(held(3, 4, 10), (3, 10)), (held(3, 4, 10, step=4), (4, 8)), (held(), (0, -1))]:
        [found] = pull(ring, kind="bounds").bounds
        assert (found.oldest, found.newest) == expected
    [nothing] = pull(held(5, 6, step=4), kind="bounds").bounds
    assert nothing.oldest == nothing.newest + 1


def test_a_number_that_was_scaled_away():
    with pytest.raises(HistoryError, match="every 4th") as error:
        pull(held(4, 8, step=4), kind="at", first=6)
    assert (error.value.seq, error.value.oldest, error.value.newest) == (6, 4, 8)


def test_what_was_overwritten_in_the_meantime_is_chosen_again():
    ring = held(1, 2, 3, step=2)

    class Racing(Gappy):
        def at(self, seq, incarnation=0, copy=True):
            if copy and self.numbers == [1, 2, 3]:
                self.numbers = [8, 9, 10]
            return super().at(seq, incarnation, copy)

    assert numbers(pull(ring._replace(view=Racing(1, 2, 3)), kind="latest")) == [10]


def test_whose_numbers_are_meant():
    one, two = info(1), info(2)
    assert whose("t", [(one, False)]) is one
    assert whose("t", [(one, False), (two, True)]) is two
    with pytest.raises(Empty):
        whose("t", [])
    for alive in (True, False):
        with pytest.raises(HistoryError, match="publisher="):
            whose("t", [(one, alive), (two, alive)])


def test_equal_send_times_are_told_apart_by_number():
    heads = [Head(1, seq, 7) for seq in range(3)]
    assert [nth_newest(heads, back).seq for back in range(3)] == [2, 1, 0]


def test_the_period_is_the_longest_of_the_last_gaps():
    uneven = held(0, 1, 2, 3, time_of=lambda seq: (0, 10, 50, 60)[seq])
    assert pull(uneven, kind="latest").period_ns == 40
    assert pull(uneven._replace(alive=False), kind="latest").period_ns == 0
    assert pull(held(5), kind="latest").period_ns == 0
    old = held(*range(40), time_of=lambda seq: seq + (1000 if seq > 10 else 0))
    assert pull(old, kind="latest").period_ns == 1


@pytest.mark.parametrize(("every", "ring_every", "step"), [(1, 1, 1), (3, 1, 3), (1, 4, 4), (4, 2, 4), (6, 4, 12)])
def test_scaling_twice(every, ring_every, step):
    assert step_of(every, ring_every) == step
    assert limit_of(5, step, ring_every) == 5 * step // ring_every
