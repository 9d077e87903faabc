"""One's own clock: set, led, or asleep."""

from __future__ import annotations

import pytest

from ringcast.clock.own import Look, Noticed, OwnClock

UTC, BOOT, AWAKE = 1_763_000_000_000_000_000, 5_000_000_000, 4_000_000_000
TENTH = 100_000_000


def after(passed: int = TENTH, *, set_by: int = 0, slept: int = 0) -> Look:
    return Look(UTC + passed + slept + set_by, BOOT + passed + slept, AWAKE + passed)


@pytest.mark.parametrize("by_ns", [1_000_000, -1_000_000, 3_600_000_000_000])
def test_a_clock_that_was_set(by_ns: int) -> None:
    assert OwnClock(after(0)).look(after(set_by=by_ns)) == [Noticed("step", by_ns)]


def test_a_clock_that_is_led_is_not_set() -> None:
    clock = OwnClock(after(0))
    for number in range(1, 100):
        assert clock.look(after(number * TENTH, set_by=number * 50_000)) == []


def test_a_machine_that_slept() -> None:
    assert OwnClock(after(0)).look(after(slept=60_000_000_000)) == [Noticed("suspend", 60_000_000_000)]
    both = OwnClock(after(0)).look(after(slept=60_000_000_000, set_by=400_000_000))
    assert [noticed.kind for noticed in both] == ["suspend", "step"]
