"""A model that loads can be evaluated; one that could not is refused when it is loaded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.adapt import Chooser, ModelError

HEAD: dict[str, Any] = {"metric": "m", "family": "f", "share": 1.0, "features": ["loss", "rate"], "labels": ["a", "b"]}
STUMP = [[0, 0.01, 1, 2], [[0.9, 0.1]], [[0.2, 0.8]]]


def parse(**more: Any) -> Chooser:
    return Chooser.parse(msgspec.json.encode({**HEAD, **more}))


def test_trees_are_walked_and_forests_are_added_up() -> None:
    assert parse(trees=[STUMP]).choose({"loss": 0.01}) == "a"
    assert parse(trees=[STUMP]).choose({"loss": 0.02, "rate": 1.0}) == "b"
    other = [[1, 5.0, 1, 2], [[1.0, 0.0]], [[0.0, 1.0]]]
    assert parse(trees=[STUMP, other]).choose({"loss": 0.02, "rate": 1.0}) == "a"
    assert parse(trees=[STUMP, other]).choose({"loss": 0.02, "rate": 9.0}) == "b"


def test_lines_are_weighed() -> None:
    chooser = parse(weights=[[1.0, 0.0], [0.0, 1.0]], constants=[0.5, 0.0])
    assert chooser.choose({"loss": 1.0, "rate": 1.0}) == "a"
    assert chooser.choose({"rate": 1.0}) == "b"


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
    ],
)
def test_what_could_not_be_evaluated_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        parse(**bad)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_model_or_an_error(data: bytes) -> None:
    with pytest.raises(ModelError):
        Chooser.parse(data)
