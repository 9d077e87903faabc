"""Boosted trees learn several numbers at once, the same ones from the same seed, in the form that models have."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringcast.spark.experiments.learning.boosting import Settings, fit


def told(trees: list[list[list[Any]]], values: list[float]) -> list[float]:
    total = np.zeros(2)
    for nodes in trees:
        node = nodes[0]
        while len(node) == 4:
            feature, threshold, left, right = node
            assert left > nodes.index(node)
            node = nodes[left if values[feature] <= threshold else right]
        total += node[0]
    return total.tolist()


def learned(seed: int = 1, rows: int = 400) -> tuple[list[list[list[Any]]], Any, Any]:
    chance = np.random.default_rng(7)
    values = chance.uniform(0, 1, (rows, 3))
    wanted = np.stack([np.where(values[:, 0] * values[:, 1] > 0.25, 1.0, 0.0), values[:, 0]], 1)
    return fit(values, wanted, seed, Settings(trees=100)), values, wanted


def test_two_numbers_that_depend_on_two_others_are_learned() -> None:
    trees, _, _ = learned()
    fresh = np.random.default_rng(8).uniform(0, 1, (200, 3))
    for_all = np.array([told(trees, row.tolist()) for row in fresh])
    product = fresh[:, 0] * fresh[:, 1]
    clear = abs(product - 0.25) > 0.05
    assert ((for_all[:, 0] > 0.5) == (product > 0.25))[clear].mean() > 0.95
    assert abs(for_all[:, 1] - fresh[:, 0]).mean() < 0.03


def test_the_same_seed_grows_the_same_trees_and_another_one_others() -> None:
    assert learned(1)[0] == learned(1)[0]
    assert learned(1)[0] != learned(2)[0]


def test_leaves_hold_as_many_rows_as_they_must_and_trees_are_no_deeper() -> None:
    trees, _, _ = learned()
    for nodes in trees:
        depths = {0: 0}
        for at, node in enumerate(nodes):
            if len(node) == 4:
                depths[node[2]] = depths[node[3]] = depths[at] + 1
        assert max(depths.values()) <= Settings().depth
        assert set(depths) == set(range(len(nodes)))


def test_what_is_always_the_same_is_predicted_by_one_leaf() -> None:
    trees = fit(np.ones((20, 2)), np.full((20, 2), 0.5), 1, Settings(trees=3))
    assert [len(nodes) for nodes in trees] == [1, 1, 1]
    assert told(trees, [5.0, 5.0]) == [0.5, 0.5]
