"""Time scaling: which messages are due, and how a rate becomes a factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.scaling.temporal import WINDOW_NS, Pace, Sample, check_rate, factor, first_due, publisher_hz

SECOND = 1_000_000_000


@given(seq=st.integers(0, 2**60), every=st.integers(1, 2**32))
def test_the_first_due_is_due_and_none_is_before_it(seq, every):
    found = first_due(seq, every)
    assert found % every == 0
    assert 0 <= found - seq < every


def test_the_rate_is_measured_by_numbers_so_scaling_does_not_change_it():
    whole = [Sample(seq, seq * SECOND // 30) for seq in range(90, 0, -1)]
    scaled = [sample for sample in whole if sample.seq % 6 == 0]
    assert publisher_hz(whole) == pytest.approx(30, rel=1e-6)
    assert publisher_hz(scaled) == pytest.approx(30, rel=1e-6)


def test_what_was_long_ago_does_not_count():
    recent = [Sample(1000 - i, 100 * SECOND - i * SECOND // 10) for i in range(30)]
    ancient = [Sample(500 - i, 50 * SECOND - i) for i in range(500)]
    assert publisher_hz(recent + ancient) == pytest.approx(10, rel=1e-6)


def test_a_slow_publisher_is_measured_beyond_the_window():
    assert publisher_hz([Sample(2, 5 * WINDOW_NS), Sample(1, 0)]) == pytest.approx(SECOND / (5 * WINDOW_NS))


@pytest.mark.parametrize("samples", [[], [Sample(3, 5)], [Sample(3, 5), Sample(2, 5)], [Sample(3, 5), Sample(3, 1)]])
def test_what_cannot_be_told(samples):
    assert publisher_hz(samples) == 0


@given(rate=st.floats(0.01, 1000), measured=st.floats(0.01, 1e6))
def test_a_factor_leaves_at_most_the_rate(rate, measured):
    n = factor(rate, measured)
    assert measured / n <= rate * 1.021
    assert n == 1 or measured / (n - 1) > rate


def test_nominal_rates_are_not_halved_by_measuring():
    assert factor(10, 30.1) == 3
    assert factor(5, 29.97) == 6


def test_the_pace_keeps_its_factor_while_the_publisher_wavers():
    pace = Pace(10)
    assert pace.follow(30) == 3
    assert {pace.follow(hz) for hz in (31, 29, 31.4, 21, 19.5, 30)} == {3}


def test_the_pace_follows_what_clearly_changed():
    pace = Pace(10)
    assert pace.follow(0) == 1
    assert pace.follow(30) == 3
    assert pace.follow(60) == 6
    assert pace.follow(40) == 4
    assert pace.follow(5) == 1
    assert pace.follow(0) == 1


@given(st.lists(st.floats(0.1, 1e5), min_size=1, max_size=30))
def test_the_pace_never_leaves_much_more_than_the_rate(measured):
    pace = Pace(7)
    for hz in measured:
        assert hz / pace.follow(hz) <= 7 * 1.051


@pytest.mark.parametrize("bad", [0, -1, True, "5", None, float("nan"), float("inf")])
def test_rates_that_are_none(bad):
    with pytest.raises(ValueError, match="rate_hz"):
        check_rate(bad)
