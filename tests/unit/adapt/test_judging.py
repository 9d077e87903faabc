"""A model is judged where nobody has seen it, beside how well the experiment repeats itself; a worse one is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ringcast.adapt.judging import Examples, judged, refusal, shipped_examples
from ringcast.adapt.shipped import ruled, shipped_model
from ringcast.adapt.wanting import IN_ORDER
from ringcast.model.carrier import METRICS

EXAMPLES = Examples(
    metric="relate2",
    numbers=["loss_percent"],
    transports=["nak", "udp"],
    environments=[[float(n)] for n in range(100)],
    # udp is best below 50; around there it depends on the run.
    costs=[([1.0, 0.5 if n < 48 else 2.0], [1.0, 0.5 if n < 52 else 2.0]) for n in range(100)],
)


def limit(loss: float) -> object:
    return lambda numbers: "udp" if numbers["loss_percent"] < loss else "nak"


def test_the_ceiling_is_how_well_the_experiment_repeats_itself() -> None:
    found = judged(limit(50), EXAMPLES)  # type: ignore[arg-type]
    assert found.ceiling == pytest.approx(0.96)
    assert found.share == pytest.approx(0.98), "between both runs is better than either"
    assert judged(limit(0), EXAMPLES).share == pytest.approx(0.5)  # type: ignore[arg-type]


def test_what_the_examples_do_not_know_is_bad() -> None:
    assert judged(lambda numbers: "pigeon", EXAMPLES).share == 0.0


def test_five_percent_and_a_little_of_a_metric_that_may_be_nothing_are_no_difference() -> None:
    def share(metric: str, nak: float, udp: float) -> float:
        return judged(lambda numbers: "udp", Examples(metric, [], ["nak", "udp"], [[]], [([nak, udp],) * 2])).share

    assert share("relate2", 1.0, 1.049) == 1.0
    assert share("relate2", 1.0, 1.051) == 0.0
    assert share("relate2", 0.0, 0.04) == 0.0
    assert share("delivered", 0.0, 0.04) == 1.0
    assert share("late_or_lost_100ms", 0.0, 0.06) == 0.0


def test_a_worse_model_is_refused_with_both_shares() -> None:
    said = refusal(limit(20), limit(50), EXAMPLES, "the model in force")  # type: ignore[arg-type]
    assert "worse than the model in force" in said
    assert "70.0% of 100 environments" in said
    assert "against 98.0%" in said


@pytest.mark.parametrize("loss", [50, 49, 51])
def test_one_that_is_as_good_or_that_chance_explains_is_taken(loss: float) -> None:
    assert refusal(limit(loss), limit(50), EXAMPLES, "the model in force") == ""  # type: ignore[arg-type]


def test_for_an_order_only_what_keeps_it_counts() -> None:
    def plain(numbers: Mapping[str, float]) -> str:
        return "nak"

    kept = Examples(
        "relate2", [], ["parity:r=4", "nak", "ordering+parity:r=4"], [[]], [([1.0, 3.0, 2.9], [1.0, 3.0, 2.0])]
    )
    assert kept.of(False).transports == ["parity:r=4", "nak"]
    assert kept.of(True).transports == ["nak", "ordering+parity:r=4"]
    assert judged(plain, kept.of(False)).share == 0.0
    assert judged(plain, kept.of(True)).share == 0.5


@pytest.mark.parametrize("base", METRICS.values())
@pytest.mark.parametrize("ending", ["", IN_ORDER])
def test_every_metric_is_chosen_for_nearly_as_well_as_the_experiment_repeats_itself(base: str, ending: str) -> None:
    examples, model = shipped_examples(base + ending), shipped_model(base + ending)
    assert examples is not None
    choose = model.choose if model is not None else ruled(base + ending, examples)
    found = judged(choose, examples)
    if (base, ending) == ("wire_bytes_per_update", IN_ORDER):
        # Daemons send least by a bare multicast that orders, which no experiment ran: what is left is second best.
        assert model is None
    else:
        assert found.share >= 0.96 * found.ceiling
    if model is not None:
        assert refusal(choose, ruled(base + ending, examples), examples, "the rule") == ""
