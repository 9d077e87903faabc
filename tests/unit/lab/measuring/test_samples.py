"""Statistics of round trips."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.lab.measuring.samples import (
    median,
    paired_ratio,
    pooled,
    quantile,
    summarise,
    thinned,
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


@given(st.lists(floats, min_size=1, max_size=200), st.integers(2, 50))
def test_thinned_samples_keep_their_ends_and_their_ranks(samples, most):
    kept = thinned(samples, most)
    assert len(kept) == min(most, len(samples))
    assert (min(kept), max(kept)) == (min(samples), max(samples))
    if len(samples) <= most:
        assert kept == samples
    assert thinned(range(1001), 11) == list(range(0, 1001, 100))


def test_quantiles_are_values_that_occurred():
    assert quantile([5, 1, 4, 2, 3], 0.0) == 1
    assert quantile([5, 1, 4, 2, 3], 0.5) == 3
    assert quantile([5, 1, 4, 2, 3], 1.0) == 5


def test_a_slow_moment_of_the_machine_does_not_change_a_paired_ratio():
    ours = [[10, 10], [30, 30], [10, 10]]
    theirs = [[20, 20], [60, 60], [20, 20]]
    assert paired_ratio(ours, theirs) == 0.5


def test_rounds_that_do_not_pair_are_refused():
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([[1]], [[1], [2]])


@pytest.mark.parametrize("nothing", [summarise, median, pooled])
def test_nothing_measured_is_an_error(nothing):
    with pytest.raises(ValueError, match="no "):
        nothing([])
