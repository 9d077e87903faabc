"""What transports can be expected to cost, by arithmetic: against counting every way in which packets can be lost."""

from __future__ import annotations

import itertools
import math

import pytest

from ringcast import _core
from ringcast.adapt.features import EXPECTED, NumbersMissing, evaluator

AROUND = {"loss_percent": 5.0, "burst": 1.0, "rate_hz": 100.0, "payload_bytes": 200.0, "delay_us": 500.0,
          "bandwidth_mbit": 100.0, "receivers": 3.0}  # fmt: skip


def counted(loss: float, burst: float, messages: int, repairs: int) -> float:
    leave, enter = 1 / burst, min(loss / (1 - loss) / burst, 1.0)
    found = 0.0
    for lost in itertools.product((False, True), repeat=messages + repairs):
        chance = loss if lost[0] else 1 - loss
        for before, after in itertools.pairwise(lost):
            stays = (1 - leave if after else leave) if before else (enter if after else 1 - enter)
            chance *= stays
        if sum(lost) > repairs:
            found += chance * sum(lost[:messages])
    return found / messages


@pytest.mark.parametrize(("loss", "burst"), [(0.01, 1.0), (0.05, 3.0), (0.1, 6.0), (0.5, 2.0)])
@pytest.mark.parametrize(("messages", "repairs"), [(1, 3), (4, 1), (4, 2), (8, 2)])
def test_what_parity_cannot_repair(loss: float, burst: float, messages: int, repairs: int) -> None:
    found = _core.missing_after_parity(loss, burst, messages, repairs)
    assert found == pytest.approx(counted(loss, burst, messages, repairs), rel=1e-9)


def test_where_nothing_is_lost_all_cost_the_way_itself() -> None:
    values = dict(zip(EXPECTED, evaluator(EXPECTED, False)({**AROUND, "loss_percent": 0.0}), strict=True))
    assert values.pop("tcp_cost") > 1.0, "it sends to each in turn"
    assert all(value == 1.0 for name, value in values.items() if name.endswith("_cost"))
    assert all(value == 0.0 for name, value in values.items() if name.endswith("_missing"))


def test_what_is_missing_costs_as_relate2_says() -> None:
    (value,) = evaluator(["multicast_cost"], False)(AROUND)
    assert value == pytest.approx(6.0)


def test_one_by_one_and_all_at_once_are_the_same() -> None:
    together = evaluator(EXPECTED, True)(AROUND)
    assert together == [evaluator([name], True)(AROUND)[0] for name in EXPECTED]
    assert all(map(math.isfinite, together))


def test_a_number_that_is_missing_is_named() -> None:
    with pytest.raises(NumbersMissing, match="burst"):
        evaluator(EXPECTED, True)({name: value for name, value in AROUND.items() if name != "burst"})


def test_no_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="no such environment"):
        _core.expected_costs(1.5, 1.0, 1e4, 100.0, 1.0, 1.0, 3.0)
