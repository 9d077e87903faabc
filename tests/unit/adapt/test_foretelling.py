"""What transports can be expected to cost, by metric, and the rule that follows from it."""

from __future__ import annotations

import pytest
from choosers import CALM, around

from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import UNITS, cost, expected_loss, rule, shown
from ringcast.adapt.wanting import Wish
from ringcast.model.carrier import METRICS
from ringcast.transport import find


def best(environment: Environment, metric: str, **more: float) -> str:
    return rule(environment, Wish(metric, **more))[0].transport


def test_more_repairs_lose_less_and_longer_bursts_more() -> None:
    lossy = around(loss_percent=3.0)
    assert expected_loss("udp", lossy) == pytest.approx(0.03)
    assert expected_loss("multicast+nak", lossy) == 0.0
    one, three = (expected_loss(f"multicast+parity:r=4,c={c}", lossy) for c in (1, 3))
    assert 0 < three < one < 0.03
    assert expected_loss("multicast+parity:r=4,c=3", around(loss_percent=3.0, burst=3.0)) > three
    assert expected_loss("lateral:r=4,c=3", around(loss_percent=3.0, receivers=25)) < 0.03
    assert all(find(one.transport) for metric in METRICS for one in rule(lossy, Wish(metric)))


def test_for_delivery_what_repairs_comes_before_what_loses() -> None:
    costs = {one.transport: one.score for one in rule(CALM, Wish("delivered"))}
    assert costs["multicast+nak"] < costs["multicast"]
    assert expected_loss(best(CALM, "delivered"), CALM) == 0.0
    calm = around(loss_percent=0.0)
    assert expected_loss(best(calm, "delivered"), around()) == 0.0, "what was not lost yet may be"


def test_for_bandwidth_what_sends_least_is_best_and_by_how_many_receivers() -> None:
    assert best(CALM, "bandwidth") == "multicast"
    costs = {one.transport: one.score for one in rule(around(loss_percent=0.0), Wish("bandwidth"))}
    assert costs["multicast"] == pytest.approx(100 * (12 + 60)), "bytes per second"
    assert costs["multicast+nak"] < costs["multicast+parity+nak:r=4,c=1,flush=1s"] < costs["tcp"]
    assert best(around(receivers=2), "bandwidth") == "multicast", "one datagram for both"
    alone = {one.transport: one.score for one in rule(around(receivers=1), Wish("bandwidth"))}
    assert alone["nak"] < alone["multicast+parity:r=4,c=2,flush=1s"]


def test_for_p99_nothing_that_few_wait_for_counts() -> None:
    rare, often = around(loss_percent=0.01, delay_us=10_000.0), around(loss_percent=5.0, delay_us=10_000.0)
    assert cost("multicast+nak", rare, Wish("p99")) < 1.1 * cost("multicast", rare, Wish("p99"))
    assert cost("multicast+nak", often, Wish("p99")) > 2 * cost("multicast", often, Wish("p99"))


def test_for_a_deadline_what_repairs_too_late_is_no_better_than_what_loses() -> None:
    slow = around(loss_percent=5.0, delay_us=20_000.0, rate_hz=1_000.0)
    assert cost("multicast+nak", slow, Wish("deadline", deadline_s=0.1)) == 0.0
    strict = Wish("deadline", deadline_s=0.03)
    assert cost("multicast+nak", slow, strict) >= cost("multicast", slow, strict) > 0
    assert cost(best(slow, "deadline", deadline_s=0.1), slow, Wish("deadline")) == 0.0
    assert "nak" not in best(slow, "deadline", deadline_s=0.03)
    assert cost("multicast", slow, Wish("deadline", deadline_s=0.01)) == pytest.approx(100.0), "all of them are late"


def test_metrics_have_different_winners() -> None:
    far = around(loss_percent=5.0, delay_us=20_000.0, rate_hz=50.0)
    assert len({best(far, metric) for metric in METRICS}) > 1


def test_what_is_shown_has_the_unit_of_the_metric() -> None:
    assert set(UNITS) == set(METRICS)
    lossy = around(loss_percent=5.0)
    assert shown("multicast", [1.0, 2.0], lossy, Wish("delivered")) == pytest.approx([95.0, 89.95])
    (value,) = shown("multicast+nak", [1.0], lossy, Wish("relate2"))
    assert value == pytest.approx(cost("multicast+nak", lossy, Wish("relate2")))
    assert 0.15 < value < 1.0, "milliseconds"
