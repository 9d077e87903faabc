"""Boosted trees that predict several numbers at once: each leaf has one for every label. Pure; tasks of Spark run it.

pyspark.ml has no such trees: its gradient boosting predicts one number, so every label would have trees of its own, ten
times as many to evaluate for one decision. Each tree is fitted to what the trees before it left over, of a part of the
rows and by a part of the features, and all nodes of a level are grown at once from one histogram. The same seed gives
the same trees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Settings(NamedTuple):
    trees: int = 150
    depth: int = 5
    rate: float = 0.08
    """The share of what is left over that a tree takes away."""
    bins: int = 48
    least_rows: int = 6
    """In a leaf."""
    rows: float = 0.7
    features: float = 0.5
    """The shares that a tree sees."""
    damping: float = 1.0
    """Rows that predict nothing, added to each leaf."""


class _Tree(NamedTuple):
    feature: Ints
    """-1: a leaf."""
    edge: Ints
    left: Ints
    """The right child follows it."""
    values: Floats


def fit(values: Floats, wanted: Floats, seed: int, settings: Settings = Settings()) -> list[list[list[Any]]]:
    """Trees over the columns of `values`, whose leaves add up to `wanted`, in the form that `ringcast.adapt` reads.
    What is wanted may be unknown (NaN): such a number teaches nothing."""
    chance = np.random.default_rng(seed)
    rows, columns = values.shape
    inner = np.linspace(0, 1, settings.bins + 1)[1:-1]
    edges = [np.unique(np.quantile(column, inner)) for column in values.T]
    binned = np.stack(
        [np.searchsorted(edge, column, side="left") for edge, column in zip(edges, values.T, strict=True)], 1
    )
    unknown = np.isnan(wanted)
    base = np.where(unknown, 0.0, wanted).sum(0) / np.maximum((~unknown).sum(0), 1)
    left_over = np.where(unknown, 0.0, wanted - base)
    trees = []
    for _ in range(settings.trees):
        sees = chance.random(rows) < settings.rows
        looks_at = np.sort(chance.choice(columns, max(1, round(settings.features * columns)), replace=False))
        tree = _grown(binned, left_over, np.flatnonzero(sees), looks_at, settings)
        left_over = np.where(unknown, 0.0, left_over - tree.values[_leaves(tree, binned)])
        trees.append(tree)
    # What all predictions have in common is in the first tree: leaves are all there is.
    trees[0] = trees[0]._replace(values=trees[0].values + base)
    return [_written(tree, edges) for tree in trees]


def _grown(binned: Ints, left_over: Floats, rows: Ints, looks_at: Ints, settings: Settings) -> _Tree:
    labels, bins, damping = left_over.shape[1], settings.bins, settings.damping
    feature, edge, left = [-1], [0], [0]
    sums = [left_over[rows].sum(0)]
    counts = [len(rows)]
    at = np.zeros(len(rows), np.int64)
    """Of each row, the node of this level that it is in, counted from the level's first."""
    first = 0
    seen, targets = binned[np.ix_(rows, looks_at)], left_over[rows]
    for _ in range(settings.depth):
        nodes = len(feature) - first
        if not nodes:
            break
        shape = nodes, len(looks_at), bins
        place = (at[:, None] * len(looks_at) + np.arange(len(looks_at))) * bins + seen
        flat, size = place.ravel(), nodes * len(looks_at) * bins
        number = np.bincount(flat, minlength=size).reshape(shape).cumsum(2)[:, :, :-1]
        total = np.array(counts[first:])[:, None, None]
        gain = np.zeros(number.shape)
        for label in range(labels):
            repeated = np.repeat(targets[:, label], len(looks_at))
            below = np.bincount(flat, weights=repeated, minlength=size).reshape(shape).cumsum(2)[:, :, :-1]
            above = np.array([one[label] for one in sums[first:]])[:, None, None] - below
            gain += below**2 / (number + damping) + above**2 / (total - number + damping)
        gain[(number < settings.least_rows) | (total - number < settings.least_rows)] = -np.inf
        best = gain.reshape(nodes, -1).argmax(1)
        column, cut = best // (bins - 1), best % (bins - 1)
        before = np.array([(one**2).sum() for one in sums[first:]]) / (total[:, 0, 0] + damping)
        worth = gain.reshape(nodes, -1)[np.arange(nodes), best] > before + 1e-12
        children = np.full(nodes, -1)
        next_first = len(feature)
        for node in map(int, np.flatnonzero(worth)):
            feature[first + node], edge[first + node] = int(looks_at[column[node]]), int(cut[node])
            left[first + node] = len(feature)
            children[node] = len(feature) - next_first
            feature += [-1, -1]
            edge += [0, 0]
            left += [0, 0]
        goes_on = children[at] >= 0
        right = seen[np.arange(len(at)), column[at]] > cut[at]
        at, seen, targets = (children[at] + right)[goes_on], seen[goes_on], targets[goes_on]
        first = next_first
        for node in range(len(feature) - first):
            mine = at == node
            sums.append(targets[mine].sum(0))
            counts.append(int(mine.sum()))
    values = settings.rate * np.array(sums) / (np.array(counts) + damping)[:, None]
    return _Tree(np.array(feature), np.array(edge), np.array(left), values)


def _leaves(tree: _Tree, binned: Ints) -> Ints:
    """Of each row, the leaf that it ends in."""
    at = np.zeros(len(binned), np.int64)
    every = np.arange(len(binned))
    while (asks := tree.feature[at] >= 0).any():
        right = binned[every, np.maximum(tree.feature[at], 0)] > tree.edge[at]
        at = np.where(asks, tree.left[at] + right, at)
    return at


def _written(tree: _Tree, edges: list[Floats]) -> list[list[Any]]:
    return [
        [[round(float(value), 4) for value in tree.values[at]]]
        if feature < 0
        else [int(feature), float(edges[feature][tree.edge[at]]), int(tree.left[at]), int(tree.left[at]) + 1]
        for at, feature in enumerate(tree.feature)
    ]
