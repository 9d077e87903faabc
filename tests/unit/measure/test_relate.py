from __future__ import annotations

import math

import pytest

from ringcast.measure import relate


def test_without_loss_both_are_the_mean_latency() -> None:
    assert relate.relate(2.0, 100, 100) == 2.0
    assert relate.relate2(2.0, 100, 100) == 2.0


def test_ten_percent_of_loss_is_an_order_of_magnitude() -> None:
    assert relate.relate2(2.0, 1000, 900) == pytest.approx(22.0)
    assert relate.relate(2.0, 1000, 900) == pytest.approx(2.0 / 0.9)


def test_the_follow_up_metrics_multiply() -> None:
    base = relate.relate2(3.0, 10, 9)
    assert relate.relate2_jit(3.0, 10, 9, 0.5) == base * 0.5
    assert relate.relate2_net(3.0, 10, 9, 7.0) == base * 7.0
    assert relate.relate2_burst(3.0, 10, 9, 2.0) == base * 2.0


def test_nothing_received_is_infinitely_bad() -> None:
    assert relate.relate(0.0, 10, 0) == math.inf
    assert relate.relate2(0.0, 10, 0) == math.inf


@pytest.mark.parametrize(("sent", "received"), [(0, 0), (10, 11), (10, -1)])
def test_counts_that_cannot_be(sent: int, received: int) -> None:
    with pytest.raises(ValueError, match="received"):
        relate.relate2(1.0, sent, received)
