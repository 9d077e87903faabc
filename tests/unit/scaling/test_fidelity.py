"""Ranges of rates and sizes, and the steps in them."""

from __future__ import annotations

import itertools
import math

import pytest

from ringcast.scaling.fidelity import Fidelity, Range, Step, wish


def test_one_rate_and_one_size_are_no_range():
    assert wish(None, None) == (None, None, None)
    assert wish(5, (320, 240)) == (5.0, (320, 240), None)
    assert wish((5, 5), ((8, 8), (8, 8))) == (5.0, (8, 8), None)


def test_the_best_of_a_range_comes_first():
    assert wish((2, 30), None) == (30.0, None, Range((2.0, 30.0), None))
    assert wish(None, ((160, 120), (640, 480))) == (None, (640, 480), Range(None, ((160, 120), (640, 480))))


@pytest.mark.parametrize(
    ("rate", "size", "said"),
    [
        ((30, 2), None, r"write rate_hz=\(2, 30\)"),
        ((1, 2, 3), None, "a rate, or"),
        ((0, 5), None, "from 1e-6"),
        (("2", 5), None, "from 1e-6"),
        (None, ((640, 480), (160, 120)), "from the least to the most"),
        (None, ((640, 100), (160, 200)), "from the least to the most"),
        (None, ((0, 1), (2, 2)), "size is"),
        (None, (1, 2, 3), "size is"),
    ],
)
def test_what_is_no_range_is_refused(rate, size, said):
    with pytest.raises(ValueError, match=said):
        wish(rate, size)


def test_steps_go_from_the_best_to_the_least_by_factors():
    steps = Range((2.0, 30.0)).steps()
    assert steps[0] == Step(30.0, None)
    assert steps[-1] == Step(2.0, None)
    ratios = [after.rate_hz / before.rate_hz for before, after in itertools.pairwise(steps)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert 2 / 3 <= ratios[0] < 1


def test_rates_and_sizes_fall_together():
    steps = Range((10.0, 20.0), ((160, 120), (640, 480))).steps()
    assert (steps[0], steps[-1]) == (Step(20.0, (640, 480)), Step(10.0, (160, 120)))
    for before, after in itertools.pairwise(steps):
        assert after.rate_hz < before.rate_hz
        assert after.size[0] < before.size[0]
        assert after.size[1] < before.size[1]


def test_small_sizes_have_no_step_twice():
    steps = Range(None, ((1, 1), (2, 2))).steps()
    assert len(steps) == len(set(steps))
    assert (steps[0].size, steps[-1].size) == ((2, 2), (1, 1))


def test_the_best_needs_no_reason():
    assert Fidelity(30.0, None).best
    assert not Fidelity(4.0, None, "messages were lost").best


def test_what_is_left_of_a_step_where_less_is_allowed():
    sizes = Range(None, ((10, 10), (80, 80)))
    assert sizes.limited(0, math.inf, None) == (Step(0.0, (80, 80)), False)
    step, less = sizes.limited(0, math.inf, (40, 40))
    assert less
    assert step.size in [one.size for one in sizes.steps()]
    assert 10 <= step.size[0] <= 40
    assert sizes.limited(0, math.inf, (1, 1)) == (Step(0.0, (10, 10)), True)
    rates = Range((2.0, 30.0), None)
    assert rates.limited(0, 7.0, None) == (Step(7.0, None), True)
    assert rates.limited(0, 1.0, None) == (Step(2.0, None), True)
    both = Range((2.0, 30.0), ((10, 10), (80, 80)))
    step, less = both.limited(0, 30.0, (40, 40))
    assert less
    assert step.rate_hz < 30
    assert both.limited(len(both.steps()) - 1, math.inf, (80, 80)) == (Step(2.0, (10, 10)), False)
