"""A model that loads can be evaluated; one that could not is refused when it is loaded."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringcast.adapt import Chooser, ModelError, NumbersMissing

HEAD: dict[str, Any] = {"metric": "m", "family": "f", "share": 1.0, "features": ["loss", "rate"], "labels": ["a", "b"]}
STUMP = [[0, 0.01, 1, 2], [[0.9, 0.1]], [[0.2, 0.8]]]


def parse(**more: Any) -> Chooser:
    return Chooser.parse(msgspec.json.encode({**HEAD, **more}))


def test_trees_are_walked_and_forests_are_added_up() -> None:
    assert parse(trees=[STUMP]).choose({"loss": 0.01, "rate": 1.0}) == "a"
    assert parse(trees=[STUMP]).choose({"loss": 0.02, "rate": 1.0}) == "b"
    other = [[1, 5.0, 1, 2], [[1.0, 0.0]], [[0.0, 1.0]]]
    assert parse(trees=[STUMP, other]).choose({"loss": 0.02, "rate": 1.0}) == "a"
    assert parse(trees=[STUMP, other]).choose({"loss": 0.02, "rate": 9.0}) == "b"


@pytest.mark.parametrize("predicts", ["shares", "costs"])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_what_is_chosen_is_ranked_first_and_of_equals_the_first_label(predicts: str, loss: float) -> None:
    chooser = parse(trees=[STUMP, [[[0.3, 0.3]]]], predicts=predicts)
    assert chooser.choose({"loss": loss, "rate": 1.0}) == chooser.ranked({"loss": loss, "rate": 1.0})[0][0]
    assert parse(trees=[[[[0.3, 0.3]]]], predicts=predicts).choose({"loss": loss, "rate": 1.0}) == "a"


def test_networks_squash_between_their_layers_and_are_added_up() -> None:
    first = {"weights": [1.0, 1.0, -1.0, 1.0], "constants": [0.0, 0.0]}
    second = {"weights": [1.0, 0.0, 0.0, 1.0], "constants": [0.0, -0.5]}
    one = parse(networks=[[first, second]], predicts="costs")
    # loss - rate and loss + rate, squashed: 0.5 against 0.75 - 0.5; then 0 against 0.4.
    assert one.choose({"loss": 2.0, "rate": 1.0}) == "b"
    (_, best), (_, other) = one.ranked({"loss": 2.0, "rate": 1.0})
    assert (math.log(best), math.log(other)) == pytest.approx((0.25, 0.5))
    more = {"weights": [0.0] * 4, "constants": [0.0, 1.0]}
    assert parse(networks=[[first, second], [more]], predicts="costs").choose({"loss": 2.0, "rate": 1.0}) == "a"


def test_lines_are_weighed() -> None:
    chooser = parse(weights=[[1.0, 0.0], [0.0, 1.0]], constants=[0.5, 0.0])
    assert chooser.choose({"loss": 1.0, "rate": 1.0}) == "a"
    assert chooser.choose({"loss": 0.0, "rate": 1.0}) == "b"


def test_products_quotients_and_logarithms() -> None:
    features = ["rate*delay", "rate/delay", "loss"]
    chooser = parse(features=features, trees=[[[0, 10.0, 1, 2], [[1, 0]], [[0, 1]]]])
    assert chooser.inputs == ["rate", "delay", "loss"]
    assert chooser.choose({"rate": 5.0, "delay": 2.0, "loss": 0.0}) == "a"
    assert chooser.choose({"rate": 5.0, "delay": 2.1, "loss": 0.0}) == "b"
    below = parse(features=features, trees=[[[1, 10.0, 1, 2], [[1, 0]], [[0, 1]]]])
    assert below.choose({"rate": 5.0, "delay": 0.0, "loss": 0.0}) == "b", "nothing is divided by 0"
    magnitude = parse(features=features, logarithms=True, trees=[[[2, math.log(0.1), 1, 2], [[1, 0]], [[0, 1]]]])
    assert [magnitude.choose({"rate": 1, "delay": 1, "loss": loss}) for loss in (0.0, 0.09, 0.2)] == ["a", "a", "b"]


def test_what_is_not_said_is_asked_for_and_what_is_far_off_is_named() -> None:
    chooser = parse(trees=[STUMP], spans={"loss": [0.0, 0.1], "rate": [10, 100]})
    with pytest.raises(NumbersMissing, match="also needs rate; it looks at loss, rate") as caught:
        chooser.choose({"loss": 0.0})
    assert caught.value.missing == ["rate"]
    assert chooser.beyond({"loss": 0.1, "rate": 10}) == []
    assert chooser.beyond({"loss": 0.2, "rate": 1000}) == ["loss", "rate"]
    assert chooser.beyond({"loss": 0.12, "rate": 8}) == [], "measured values wander around the ends"


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"trees": [[]]},
        {"trees": [[[0, 0.1, 0, 1], [[1, 0]]]]},
        {"trees": [[[0, 0.1, 1, 2], [[1, 0]]]]},
        {"trees": [[[2, 0.1, 1, 2], [[1, 0]], [[1, 0]]]]},
        {"trees": [[[[1.0]]]]},
        {"weights": [[1.0, 0.0]], "constants": [1.0]},
        {"weights": [[1.0], [1.0]], "constants": [1.0, 1.0]},
        {"labels": [], "trees": [[[[]]]]},
        {"trees": "no"},
        {"networks": [[]]},
        {"networks": [[{"weights": [1.0, 0.0], "constants": [0.0]}]]},
        {"networks": [[{"weights": [1.0, 0.0, 1.0], "constants": [0.0, 0.0]}]]},
        {"networks": [[{"weights": [1.0] * 4, "constants": [0.0] * 2}]], "trees": [STUMP]},
        {"features": ["loss", "rate*"], "trees": [STUMP]},
        {"features": ["loss", "2*rate"], "trees": [STUMP]},
    ],
)
def test_what_could_not_be_evaluated_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        parse(**bad)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_any_bytes_are_a_model_or_an_error(data: bytes) -> None:
    with pytest.raises(ModelError):
        Chooser.parse(data)
