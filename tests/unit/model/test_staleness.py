import math

from ringcast.model.staleness import bound_s, longest_gap_ns


def test_the_longest_gap_counts():
    assert longest_gap_ns([50, 40, 10, 5]) == 30
    assert longest_gap_ns([50]) == 0
    assert longest_gap_ns([]) == 0


def test_the_bound_is_period_and_delay_or_nothing_bounds_it():
    assert bound_s(2_000_000_000, 0.5) == 2.5
    assert bound_s(0, 0.5) == math.inf
