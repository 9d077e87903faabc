"""A trained model, evaluated without Spark: numbers of an environment in, the name of a transport out.

The model is a small JSON file. `features` says what is looked at (see `features`), `labels` the choices, and one of
`trees` (inner nodes are [feature, threshold, left, right], leaves [shares of the labels]; shares of several trees are
added) or `weights` and `constants` decides; of equals the first label wins. With `predicts` "costs" they give the
logarithm of the metric for each label instead, and the lowest wins. The rest says how good it is: `share` of
environments it never saw in which its choice was nearly the best, `constant` the same of the one transport that is best
on the whole, and `spans`, from where to where the environments reached it learned from.
Invariant: a model that loads can be evaluated; nothing in the file is executed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ringcast.adapt.features import evaluator, inputs
from ringcast.errors import RingcastError

Leaf = tuple[list[float]]
Inner = tuple[int, float, int, int]
_MOST_LOG = 700.0


class ModelError(RingcastError, ValueError):
    """The file is not a model that can be evaluated here."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} is no model: {reason}; 'ringcast pipeline run train' writes one")


class _Model(msgspec.Struct, frozen=True):
    metric: str
    family: str
    share: float
    features: list[str]
    labels: list[str]
    constant: float = 0.0
    spans: dict[str, tuple[float, float]] = {}
    wins: dict[str, int] = {}
    logarithms: bool = False
    predicts: Literal["shares", "costs"] = "shares"
    trees: list[list[list[float | list[float]]]] = []
    weights: list[list[float]] = []
    constants: list[float] = []


class Chooser:
    """`choose({"loss": 0.03, "rate_hz": 50.0, ...})` gives `"lateral:r=4,c=3"`."""

    def __init__(self, model: _Model, path: str = "the model") -> None:
        self.metric, self.family, self.labels = model.metric, model.family, model.labels
        self.features, self.share, self.constant = model.features, model.share, model.constant
        self.spans, self.wins = model.spans, model.wins
        self._costs = model.predicts == "costs"
        try:
            self.inputs = inputs(model.features)
            self._values = evaluator(model.features, model.logarithms)
        except ValueError as exc:
            raise ModelError(path, str(exc)) from exc
        self._trees = [_checked_tree(nodes, model, path) for nodes in model.trees]
        self._lines = _checked_lines(model, path)
        if not model.labels or bool(self._trees) == bool(self._lines):
            raise ModelError(path, "it has no labels, or not exactly one of trees and weights")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Chooser:
        """Raises ModelError, OSError."""
        return cls.parse(Path(path).read_bytes(), str(path))

    @classmethod
    def parse(cls, data: bytes, path: str = "the model") -> Chooser:
        """Raises ModelError."""
        try:
            return cls(msgspec.json.decode(data, type=_Model), path)
        except msgspec.MsgspecError as exc:
            raise ModelError(path, str(exc)) from exc

    def choose(self, environment: Mapping[str, float]) -> str:
        """The label for these numbers; others than `inputs` are not looked at. Raises NumbersMissing."""
        scores = self._scores(environment)
        return self.labels[scores.index(min(scores) if self._costs else max(scores))]

    def ranked(self, environment: Mapping[str, float]) -> list[tuple[str, float]]:
        """The labels, best first, each with a score that is better the lower it is: the metric as it is predicted, or
        the share of evidence against the label. Raises NumbersMissing."""
        scores = self._scores(environment)
        if self._costs:
            rated = [math.exp(min(score, _MOST_LOG)) for score in scores]
        elif self._trees:
            rated = [1 - score / len(self._trees) for score in scores]
        else:
            highest = max(scores)
            total = sum(math.exp(score - highest) for score in scores)
            rated = [1 - math.exp(score - highest) / total for score in scores]
        return sorted(zip(self.labels, rated, strict=True), key=lambda pair: pair[1])

    def _scores(self, environment: Mapping[str, float]) -> list[float]:
        values = self._values(environment)
        if len(self._trees) == 1:
            return _leaf(self._trees[0], values)
        if self._trees:
            return list(map(sum, zip(*(_leaf(nodes, values) for nodes in self._trees), strict=True)))
        return [constant + sum(map(float.__mul__, row, values)) for row, constant in self._lines]

    def beyond(self, environment: Mapping[str, float]) -> list[str]:
        """Names of numbers that lie outside what the model learned from: there it only guesses."""
        spans = ((name, self.spans.get(name, (-math.inf, math.inf))) for name in self.inputs)
        return [name for name, (low, high) in spans if not low <= environment.get(name, low) <= high]


def _leaf(nodes: list[Inner | Leaf], values: list[float]) -> list[float]:
    node = nodes[0]
    while len(node) == 4:
        feature, threshold, left, right = node
        node = nodes[left if values[feature] <= threshold else right]
    return node[0]


def _checked_tree(nodes: list[list[float | list[float]]], model: _Model, path: str) -> list[Inner | Leaf]:
    """Children lie behind their parents, so that every walk ends; what is named is there."""
    out: list[Inner | Leaf] = []
    for at, node in enumerate(nodes):
        if len(node) == 1 and isinstance(node[0], list) and len(node[0]) == len(model.labels):
            out.append((node[0],))
            continue
        numbers = [x for x in node if isinstance(x, float | int)]
        if len(node) != 4 or len(numbers) != 4:
            raise ModelError(path, f"node {at} is neither inner nor a leaf of {len(model.labels)} shares")
        feature, left, right = (int(numbers[i]) for i in (0, 2, 3))
        if not 0 <= feature < len(model.features) or not at < min(left, right) or max(left, right) >= len(nodes):
            raise ModelError(path, f"node {at} names a feature or a node that is not there")
        out.append((feature, float(numbers[1]), left, right))
    if not out:
        raise ModelError(path, "a tree has no nodes")
    return out


def _checked_lines(model: _Model, path: str) -> list[tuple[list[float], float]]:
    if not model.weights:
        return []
    if len(model.weights) != len(model.labels) or len(model.constants) != len(model.labels):
        raise ModelError(path, "there is not one row of weights for each label")
    if any(len(row) != len(model.features) for row in model.weights):
        raise ModelError(path, "a row of weights has not one number for each feature")
    return [(list(map(float, row)), constant) for row, constant in zip(model.weights, model.constants, strict=True)]
