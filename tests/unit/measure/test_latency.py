from __future__ import annotations

import pytest

from ringcast.measure import latency, traffic


def test_summary() -> None:
    found = latency.summarise([1.0, 2.0, 3.0, 10.0])
    assert (found.number, found.mean, found.p50, found.p99, found.most) == (4, 4.0, 2.0, 10.0, 10.0)
    assert found.std == latency.deviation_jitter([1.0, 2.0, 3.0, 10.0])


def test_two_kinds_of_jitter() -> None:
    # Perfectly periodic but ever later: no period jitter, and the latency deviates.
    assert latency.period_jitter([0.0, 1.5, 3.0, 4.5]) == 0.0
    assert latency.period_jitter([0.0, 1.0, 3.0, 4.0]) == pytest.approx(1.0)
    assert latency.period_jitter([0.0, 1.0]) == 0.0
    assert latency.deviation_jitter([1.0, 3.0]) == pytest.approx(1.0)


def test_what_never_came_missed_its_deadline() -> None:
    assert latency.missed_share([0.1, 0.2, 0.9], sent=4, deadline=0.5) == 0.5
    with pytest.raises(ValueError, match="sent"):
        latency.missed_share([], 0, 1.0)


def test_no_samples() -> None:
    with pytest.raises(ValueError, match="no samples"):
        latency.summarise([])


def test_bandwidth_counts_silent_windows() -> None:
    mean, std = traffic.bandwidth([100, 100, 200], [0.0, 0.5, 2.5], 1.0)
    assert mean == pytest.approx(400 / 3)
    assert std == pytest.approx(((200 - mean) ** 2 * 2 / 3 + mean**2 / 3) ** 0.5)


def test_loss_and_overhead() -> None:
    assert traffic.loss_share(0, 0) == 0.0
    assert traffic.loss_share(4, 3) == 0.25
    assert traffic.overhead(100, 175) == 0.75
    with pytest.raises(ValueError, match="received"):
        traffic.loss_share(3, 4)
    with pytest.raises(ValueError, match="useful"):
        traffic.overhead(0, 1)
