"""Numbers that follow from an environment are the same, whichever of them a model asks for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.adapt import NumbersMissing
from ringcast.adapt.features import DERIVED, evaluator, inputs, numbers

AROUND = {"rate_hz": 100.0, "delay_us": 600.0, "payload_bytes": 190.0, "bandwidth_mbit": 100.0, "loss_percent": 5.0}
amounts = st.floats(0, 1e6)


def test_how_long_things_take() -> None:
    assert numbers(list(DERIVED))(AROUND) == pytest.approx([10_000, 20, 825, 6_600, 5_000, 0, 11_600, 825, 1, 5.05])
    assert numbers(["period_us", "block_us"])({"rate_hz": 1_000.0}) == pytest.approx([1_000, 3_000])
    assert inputs(["way_us/period_us", "loss_percent"]) == [
        "delay_us", "payload_bytes", "bandwidth_mbit", "rate_hz", "loss_percent",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rate_hz", "waits_us"),
    [
        (100.0, 0.0),  # 5 ms after the block went out
        (190.0, 600 - 263.16),  # one message in a block, and the next is due 263 us after its repairs
        (201.0, 0.0),  # two in a block, and 4.95 ms until the next
        (399.0, (600 - 12.53) / 2),  # the first of two waits
        (1_000.0, 0.0),  # the block is full, and the line free again before the next
        (2_000.0, 100 / 4),
    ],
)
def test_a_message_may_wait_behind_the_repairs_of_a_block(rate_hz: float, waits_us: float) -> None:
    around = {"rate_hz": rate_hz, "payload_bytes": 112.0, "bandwidth_mbit": 10.0}
    assert numbers(["clash_us"])(around) == pytest.approx([waits_us], abs=0.1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(amounts, amounts, amounts, amounts, amounts)
def test_all_of_them_at_once_are_what_each_is_alone(
    rate: float, delay: float, size: float, mbit: float, loss: float
) -> None:
    around = {
        "rate_hz": rate, "delay_us": delay, "payload_bytes": size, "bandwidth_mbit": mbit, "loss_percent": loss,
    }  # fmt: skip
    alone = [numbers([name])(around)[0] for name in DERIVED]
    assert numbers(list(reversed(DERIVED)))(around) == pytest.approx(alone)
    assert evaluator(list(reversed(DERIVED)), False)(around) == pytest.approx(alone[::-1])
    some = ["way_us", "held_us", "lossy_percent", "loss_percent", "rate_hz"]
    assert evaluator(some, False)(around) == pytest.approx([*(numbers([name])(around)[0] for name in some)])


def test_a_number_that_is_missing_is_named_by_what_the_environment_calls_it() -> None:
    with pytest.raises(NumbersMissing, match="also needs delay_us"):
        evaluator([*DERIVED], True)({name: value for name, value in AROUND.items() if name != "delay_us"})
    with pytest.raises(NumbersMissing, match="also needs rate_hz"):
        evaluator(["loss_percent*period_us"], True)({"loss_percent": 1.0})
