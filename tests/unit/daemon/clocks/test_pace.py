"""How often a node's clock is probed: closely while it is of use, seldom otherwise."""

from __future__ import annotations

import pytest

from ringcast.daemon.clocks.pace import (
    FIRST_PERIOD_S,
    FIRST_PROBES,
    MORE,
    RESTING_PERIOD_S,
    SAME_PERIOD_S,
    WANTED_S,
    Pace,
)

PERIOD_S = 0.1


def count(pace: Pace, begin_s: float, end_s: float, *, same: bool = False, wide: bool = False) -> int:
    """Probes from one moment to another, each sent when it is due."""
    sent = 0
    while pace.due_s < end_s:
        pace.probed(max(pace.due_s, begin_s), same=same, wide=wide, slowest_s=0.0)
        sent += 1
    return sent


def begun(at_s: float = 100.0) -> Pace:
    pace = Pace(PERIOD_S)
    pace.begin(at_s)
    return pace


def test_first_probes_go_in_quick_succession_though_nothing_is_wanted() -> None:
    pace = begun()
    assert count(pace, 100.0, 100.0 + FIRST_PROBES * FIRST_PERIOD_S) == FIRST_PROBES
    assert pace.due_s == pytest.approx(100.0 + RESTING_PERIOD_S, abs=0.1)


def test_a_node_of_which_nothing_is_wanted_rests() -> None:
    pace = begun()
    count(pace, 100.0, 101.0)
    assert count(pace, 101.0, 101.0 + 100 * RESTING_PERIOD_S) == 100


def test_a_wanted_node_is_probed_closely_and_rests_again() -> None:
    pace = begun()
    count(pace, 100.0, 101.0)
    assert pace.want(150.0)
    pace.begin(150.0)
    assert count(pace, 150.0, 151.0) == pytest.approx(FIRST_PROBES + 10, abs=2)
    assert not pace.want(151.0), "it is probed closely already"
    assert count(pace, 151.0, 151.0 + WANTED_S) == pytest.approx(10 * WANTED_S, rel=0.02)
    assert count(pace, 151.0 + WANTED_S, 152.0 + WANTED_S) <= 1
    assert pace.want(500.0)


def test_a_wide_bound_is_probed_more_often_only_while_it_is_wanted() -> None:
    pace = begun()
    count(pace, 100.0, 101.0, wide=True)
    assert count(pace, 101.0, 101.0 + 10 * RESTING_PERIOD_S, wide=True) == 10
    pace.want(300.0)
    pace.begin(300.0)
    count(pace, 300.0, 301.0)
    assert count(pace, 301.0, 302.0, wide=True) == pytest.approx(10 * MORE, abs=2)


def test_the_same_clock_is_only_looked_at() -> None:
    pace = begun()
    pace.want(100.0)
    assert count(pace, 100.0, 100.0 + WANTED_S, same=True) == pytest.approx(WANTED_S / SAME_PERIOD_S, abs=2)


def test_many_nodes_share_what_may_leave() -> None:
    pace = begun()
    pace.want(100.0)
    count(pace, 100.0, 101.0)
    before = pace.due_s
    pace.probed(before, same=False, wide=True, slowest_s=3.0)
    assert pace.due_s == before + 3.0
