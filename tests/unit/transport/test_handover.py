"""Who sends which message while a stream goes from the pump to the publisher."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.transport.handover import CLOSE_BEHIND, MOST_RETURNS, MOST_TRIES, NEVER, Handover


class Source:
    next_seq = 0


class Pump:
    def __init__(self, first_seq: int) -> None:
        self.next_seq = self.first_seq = first_seq
        self.end = NEVER
        self.state = "running"
        self.closed = False

    def stop_before(self, seq: int) -> None:
        self.end = seq

    def reach(self, seq: int) -> None:
        self.next_seq = min(seq, self.end)
        if self.next_seq >= self.end:
            self.state = "done"

    def close(self) -> None:
        self.closed = True


class Rig:
    """`sent_meanwhile` is what the publisher sends while it is being told of the link."""

    def __init__(self, next_seq: int, sent_meanwhile: int = 0) -> None:
        self.source = Source()
        self.source.next_seq = next_seq
        self.sent_meanwhile = sent_meanwhile
        self.pumps: list[Pump] = []
        self.pushes: list[int] = []
        source: Any = self.source
        self.handover = Handover(source, self._pump, self._push)

    def _pump(self, first_seq: int) -> Any:
        self.pumps.append(Pump(first_seq))
        return self.pumps[-1]

    def _push(self, first_seq: int) -> None:
        self.pushes.append(first_seq)
        self.source.next_seq += self.sent_meanwhile


def test_without_history_the_publisher_pushes_at_once() -> None:
    rig = Rig(next_seq=10)
    rig.handover.begin(10)
    assert (rig.pushes, rig.pumps) == ([10], [])


def test_what_was_sent_before_the_publisher_could_know_is_pumped() -> None:
    rig = Rig(next_seq=10, sent_meanwhile=3)
    rig.handover.begin(10)
    assert [(pump.first_seq, pump.end) for pump in rig.pumps] == [(10, 13)]
    rig.pumps[0].reach(13)
    rig.handover.settle()
    assert rig.handover.pump is None
    assert rig.pumps[0].closed


def test_the_pump_follows_until_it_is_close_and_stops_where_the_publisher_began() -> None:
    rig = Rig(next_seq=1000, sent_meanwhile=5)
    rig.handover.begin(0)
    pump = rig.pumps[0]
    assert pump.end == NEVER
    rig.handover.settle()
    assert rig.pushes == []
    rig.source.next_seq = 2000  # the publisher goes on meanwhile
    pump.reach(2000 - CLOSE_BEHIND)
    rig.handover.settle()
    assert rig.pushes == [2000 - CLOSE_BEHIND], "nothing that the pump still has to send comes after it"
    assert pump.end == 2005
    rig.handover.settle()
    assert not pump.closed
    pump.reach(2005)
    rig.handover.settle()
    assert rig.handover.pump is None


def test_a_pump_that_never_comes_close_hands_over_in_the_end() -> None:
    rig = Rig(next_seq=10_000)
    rig.handover.begin(0)
    for _ in range(MOST_TRIES):
        rig.handover.settle()
    assert rig.pushes == []
    rig.handover.settle()
    assert rig.pushes == [10_000]


@pytest.mark.parametrize("ended", [False, True])
def test_a_publisher_that_fell_behind_is_followed_and_told_again(ended: bool) -> None:
    rig = Rig(next_seq=10, sent_meanwhile=4)
    rig.handover.begin(0)
    rig.pumps[0].reach(10)
    rig.handover.settle()
    assert rig.pushes == [10]
    if ended:
        rig.pumps[0].reach(14)
    rig.handover.behind(10)
    rig.source.next_seq = 30
    rig.handover.settle()
    if ended:  # the next pump begins where the first ended
        assert rig.pumps[1].first_seq == 14
        rig.handover.settle()
    assert rig.pushes == [10, 14 if ended else 10]
    assert rig.pumps[-1].end == 34


def test_one_that_falls_behind_again_and_again_begins_with_its_next_message() -> None:
    rig = Rig(next_seq=50)
    rig.handover.begin(0)
    rig.pumps[0].reach(40)
    for _ in range(MOST_RETURNS):
        rig.handover.settle()
        rig.handover.behind(40)
    rig.handover.settle()
    assert rig.pushes == [40] * MOST_RETURNS + [50]


def test_one_that_fell_behind_after_the_pump_was_gone_is_pumped_from_there() -> None:
    rig = Rig(next_seq=10)
    rig.handover.begin(10)
    rig.handover.behind(10)
    assert rig.pumps[0].first_seq == 10
    assert not rig.handover.pushed
    rig.handover.behind(10)
    assert len(rig.pumps) == 1


def test_a_broken_pump_is_seen_and_not_replaced() -> None:
    rig = Rig(next_seq=10)
    rig.handover.begin(0)
    rig.pumps[0].state = "broken"
    rig.handover.settle()
    assert rig.handover.broken
    assert len(rig.pumps) == 1
