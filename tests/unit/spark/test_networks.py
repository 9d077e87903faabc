"""Networks learn several numbers at once, the same ones from the same seed, in the form that models have."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from ringcast.adapt import Chooser
from ringcast.spark.experiments.learning.networks import Settings, fit

QUICK = Settings(networks=2, hidden=(16, 16), epochs=60, batch=64, rate=1e-2)


def drawn(rows: int, seed: int) -> tuple[Any, Any]:
    values = np.random.default_rng(seed).uniform(1, 10, (rows, 2))
    return values, np.stack([np.log(values[:, 0]), np.log(values[:, 1])], 1)


def told(networks: list[list[dict[str, Any]]], values: Any) -> Any:
    model = {"metric": "m", "family": "neural", "share": 1.0, "features": ["x", "y"], "labels": ["a", "b"]}
    chooser = Chooser.parse(msgspec.json.encode({**model, "networks": networks, "predicts": "costs"}))
    ranked = [dict(chooser.ranked({"x": x, "y": y})) for x, y in values]
    return np.log([[one["a"], one["b"]] for one in ranked])


def test_what_is_learned_holds_where_nothing_was_learned_from() -> None:
    values, wanted = drawn(600, 1)
    fresh, there = drawn(100, 2)
    assert np.abs(told(fit(values, wanted, 1, QUICK), fresh) - there).mean() < 0.05


def test_the_same_seed_learns_the_same_and_another_one_something_else() -> None:
    values, wanted = drawn(100, 1)
    few = QUICK._replace(epochs=2)
    assert fit(values, wanted, 1, few) == fit(values, wanted, 1, few)
    assert fit(values, wanted, 1, few) != fit(values, wanted, 2, few)


def test_what_is_unknown_teaches_nothing() -> None:
    values, wanted = drawn(600, 1)
    unknown = np.random.default_rng(3).random(wanted.shape) < 0.5
    fresh, there = drawn(100, 2)
    found = told(fit(values, np.where(unknown, np.nan, wanted), 1, QUICK), fresh)
    assert np.abs(found - there).mean() < 0.08


@pytest.mark.parametrize("rows", [1, 70])
def test_what_is_always_the_same_is_predicted(rows: int) -> None:
    values = np.full((rows, 2), 3.0)
    found = told(fit(values, np.full((rows, 2), 0.5), 1, QUICK._replace(epochs=3)), values[:1])
    assert found == pytest.approx(np.full((1, 2), 0.5), abs=1e-3)
