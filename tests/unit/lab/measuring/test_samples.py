"""Statistics of round trips."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.lab.measuring.samples import (
    fit,
    median,
    paired_difference,
    paired_ratio,
    pooled,
    quantile,
    summarise,
    typical,
)

floats = st.floats(0.001, 1e9)


@given(st.lists(floats, min_size=1, max_size=200))
def test_a_summary_agrees_with_the_standard_library(samples):
    seen = summarise(samples)
    assert seen.number == len(samples)
    assert seen.mean == pytest.approx(statistics.fmean(samples))
    assert seen.std == pytest.approx(statistics.pstdev(samples), rel=1e-6, abs=1e-6)
    assert seen.p50 in samples
    assert sorted(samples)[len(samples) // 2] == seen.p50
    assert median(samples) == pytest.approx(statistics.median(samples))


def test_quantiles_are_values_that_occurred():
    assert quantile([5, 1, 4, 2, 3], 0.0) == 1
    assert quantile([5, 1, 4, 2, 3], 0.5) == 3
    assert quantile([5, 1, 4, 2, 3], 1.0) == 5


def test_the_typical_batch_is_the_one_in_the_middle_and_not_an_average():
    quiet, busy, wild = [10, 12], [20, 22], [1000, 3000]
    assert typical([wild, quiet, busy]) == summarise(busy)
    assert pooled([wild, quiet]).number == 4


def test_a_slow_moment_of_the_machine_does_not_change_a_paired_ratio():
    ours = [[10, 10], [30, 30], [10, 10]]
    theirs = [[20, 20], [60, 60], [20, 20]]
    assert paired_ratio(ours, theirs) == 0.5
    assert paired_difference(ours, theirs) == -10


def test_rounds_that_do_not_pair_are_refused():
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([[1]], [[1], [2]])


@given(st.floats(-100, 100), st.floats(-100, 100), st.lists(st.integers(-1000, 1000), min_size=2, unique=True))
def test_points_on_a_line_give_the_line(slope, intercept, xs):
    line = fit([(float(x), slope * x + intercept) for x in xs])
    assert line.slope == pytest.approx(slope, abs=1e-6)
    assert line.intercept == pytest.approx(intercept, abs=1e-4)
    if abs(slope) > 0.01:
        assert abs(line.r) == pytest.approx(1.0, abs=1e-6)
        assert (line.r > 0) == (slope > 0)


def test_points_all_over_the_place_are_no_line():
    assert abs(fit([(0, 0), (1, 5), (2, 0), (3, 5), (4, 0)]).r) < 0.1


@pytest.mark.parametrize("nothing", [summarise, typical, median, pooled])
def test_nothing_measured_is_an_error(nothing):
    with pytest.raises(ValueError, match="no "):
        nothing([])


def test_one_x_is_no_line():
    with pytest.raises(ValueError, match="different x"):
        fit([(1, 2), (1, 3)])
