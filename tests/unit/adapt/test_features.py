"""Numbers that follow from an environment are the same, whichever of them a model asks for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast import _core
from ringcast.adapt import NumbersMissing
from ringcast.adapt.features import DERIVED, MEASURED, evaluator, inputs, measured, numbers, shapes, taken

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


def by_the_core(features: list[str], around: dict[str, float]) -> list[float]:
    """A network of one layer that hands its inputs through."""
    n = len(features)
    same = [float(row == column) for row in range(n) for column in range(n)]
    layers = _core.Layers(
        numbers=len(numbers(features)(around)), features=shapes(features), logarithms=False,
        networks=[[(same, [0.0] * n)]], labels=n, taken=taken(features),
    )  # fmt: skip
    return layers.scores(measured(features)(around))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(amounts, amounts, amounts, amounts, amounts)
def test_the_core_computes_the_same(rate: float, delay: float, size: float, mbit: float, loss: float) -> None:
    around = {
        "rate_hz": rate, "delay_us": delay, "payload_bytes": size, "bandwidth_mbit": mbit, "loss_percent": loss,
        "receivers": 3.0, "burst": 2.0,
    }  # fmt: skip
    for features in ([*reversed(DERIVED)], [*MEASURED, *DERIVED], ["way_us", "held_us", "loss_percent", "rate_hz"]):
        # Networks reckon with 24 bits. What nearly fills the line is what is left of two large numbers.
        near = pytest.approx(evaluator(features, False)(around), rel=1e-5, abs=1e-3)
        assert by_the_core(features, around) == near


def test_what_no_feature_needs_may_be_missing() -> None:
    assert by_the_core(["period_us", "loss_percent"], {"rate_hz": 100.0, "loss_percent": 5.0}) == [10_000.0, 5.0]
    assert taken(["rate_hz*temperature"]) == [], "which is neither measured by daemons nor follows from that"
    with pytest.raises(NumbersMissing, match="also needs rate_hz"):
        measured(["period_us", "loss_percent"])({"loss_percent": 5.0})
    with pytest.raises(ValueError, match="measured"):
        _core.Layers(
            numbers=1, features=[[(False, 0)]], logarithms=False, networks=[[([1.0], [0.0])]], labels=1, taken=[17]
        )


def test_a_number_that_is_missing_is_named_by_what_the_environment_calls_it() -> None:
    with pytest.raises(NumbersMissing, match="also needs delay_us"):
        evaluator([*DERIVED], True)({name: value for name, value in AROUND.items() if name != "delay_us"})
    with pytest.raises(NumbersMissing, match="also needs rate_hz"):
        evaluator(["loss_percent*period_us"], True)({"loss_percent": 1.0})
