"""How often something is repeated when there is a time by which it should be done."""

from __future__ import annotations

from ringcast.lab.measuring.pacing import paced


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def repeated(wanted: int, least: int, most_s: float, each_s: float) -> int:
    clock, done = Clock(), 0
    for number in paced(wanted, least, most_s, clock):
        assert number == done
        done += 1
        clock.now_s += each_s
    return done


def test_all_where_there_is_time() -> None:
    assert repeated(4, 1, 10.0, 2.5) == 4


def test_none_that_would_not_end_in_time() -> None:
    assert repeated(4, 1, 10.0, 4.0) == 2


def test_the_least_however_long_they_take() -> None:
    assert repeated(4, 2, 1.0, 50.0) == 2
    assert repeated(4, 0, 1.0, 50.0) == 1
