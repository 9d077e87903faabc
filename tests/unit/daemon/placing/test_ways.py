"""Distances: hops by what is left of the time to live; noise changes nothing."""

from __future__ import annotations

import pytest

from ringcast.control.placing import Way
from ringcast.daemon.placing.interfaces import bytes_per_second, local_address
from ringcast.daemon.placing.ways import hops_of, settled


@pytest.mark.parametrize(("left", "hops"), [(64, 1), (63, 2), (1, 64), (0, 64), (255, 1)])
def test_hops_by_what_is_left_of_the_time_to_live(left: int, hops: int) -> None:
    assert hops_of(left) == hops


def test_a_round_trip_that_wavers_is_the_same() -> None:
    old = Way("b", 1, 0.010)
    assert settled(old, Way("b", 1, 0.014)) is old
    assert settled(old, Way("b", 1, 0.007)) is old
    for other in (Way("b", 1, 0.016), Way("b", 1, 0.006), Way("b", 2, 0.010), Way("b", 1, 0.010, 1e6)):
        assert settled(old, other) is other


def test_a_loop_back_says_no_rate() -> None:
    assert local_address("127.0.0.1") == "127.0.0.1"
    assert bytes_per_second("127.0.0.1") == 0.0
    assert bytes_per_second("192.0.2.1") == 0.0  # nobody's
