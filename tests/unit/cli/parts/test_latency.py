from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.cli.parts.latency import DelayLog, nearest_rank, summarise


def test_percentiles_are_values_that_were_measured() -> None:
    delays = summarise(list(range(1, 101)))
    assert (delays.min_ns, delays.p50_ns, delays.p90_ns, delays.p99_ns, delays.max_ns) == (1, 50, 90, 99, 100)


def test_nothing_measured_is_nothing_known() -> None:
    delays = summarise([])
    assert delays.messages == 0
    assert delays.p50_ns is delays.max_ns is delays.mean_ns is delays.jitter_ns is delays.std_ns is None


def test_jitter_is_the_mean_step_from_one_delay_to_the_next() -> None:
    assert summarise([10, 30, 10, 30]).jitter_ns == pytest.approx(20.0)
    assert summarise([10, 10, 10]).jitter_ns == 0.0
    assert summarise([10]).jitter_ns is None


@given(st.lists(st.integers(-(10**9), 10**12), min_size=1), st.floats(0.01, 1.0))
def test_at_least_that_share_does_not_exceed_a_percentile(values: list[int], share: float) -> None:
    ordered = sorted(values)
    found = nearest_rank(ordered, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_windows_add_up_in_order() -> None:
    whole, window = DelayLog(), DelayLog()
    for delay in (10, 30):
        whole.add(delay)
    for delay in (10, 30):
        window.add(delay)
    whole.take(window)
    assert whole.delays() == summarise([10, 30, 10, 30])
