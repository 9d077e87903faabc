"""A trained model, evaluated without Spark: numbers of an environment in, the name of a transport out.

The model is a small JSON file. `features` says what is looked at (see `features`), `labels` the choices, and one of
`trees` (inner nodes are [feature, threshold, left, right], leaves [shares of the labels]; shares of several trees are
added), `networks` (each a list of layers with `weights`, by input and output, and `constants`; added too) or `weights`
and `constants` decides; of equals the first label wins. With `predicts` "costs" they give the
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

from ringcast import _core
from ringcast.adapt.features import evaluator, inputs, measured, numbers, parts, shapes, taken
from ringcast.errors import RingcastError

_MOST_LOG = 700.0
_MOST = math.exp(_MOST_LOG)
_exp = math.exp
PLENTY = ("bandwidth_mbit",)
REACH = 1.25
"""So far beyond the ends of what it learned from a model is still asked: what is measured there wanders around them."""


class ModelError(RingcastError, ValueError):
    """The file is not a model that can be evaluated here."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} is no model: {reason}; 'ringcast pipeline run train' writes one")


class _Layer(msgspec.Struct, frozen=True):
    weights: list[float]
    constants: list[float]


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
    networks: list[list[_Layer]] = []
    weights: list[list[float]] = []
    constants: list[float] = []


class Chooser:
    """`choose({"loss": 0.03, "rate_hz": 50.0, ...})` gives `"lateral:r=4,c=3"`."""

    def __init__(self, model: _Model, path: str = "the model") -> None:
        self.metric, self.family, self.labels = model.metric, model.family, model.labels
        self.features, self.share, self.constant = model.features, model.share, model.constant
        self.spans, self.wins = model.spans, model.wins
        self.predicts_costs = model.predicts == "costs"
        self._lines = _checked_lines(model, path)
        if not model.labels or [bool(model.trees), bool(model.networks), bool(self._lines)].count(True) != 1:
            raise ModelError(path, "it has no labels, or not exactly one of trees, networks and weights")
        try:
            self.inputs = inputs(model.features)
            self._numbers = measured(model.features) if taken(model.features) else numbers(model.features)
            self._values = evaluator(model.features, model.logarithms)
        except ValueError as exc:
            raise ModelError(path, str(exc)) from exc
        spans = ((name, self.spans.get(name, (-math.inf, math.inf))) for name in self.inputs)
        self._ends = [
            (name, low / REACH, math.inf if name in PLENTY else high * REACH)
            for name, (low, high) in spans
        ]  # fmt: skip
        self._native = _native(model, path)
        self._trees_number = len(model.trees)

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
        if self._native is not None:
            return self.labels[self._native.best(self._numbers(environment), self.predicts_costs)]
        scores = self._scores(environment)
        return self.labels[scores.index(min(scores) if self.predicts_costs else max(scores))]

    def ranked(self, environment: Mapping[str, float]) -> list[tuple[str, float]]:
        """The labels, best first, each with a score that is better the lower it is: the metric as it is predicted, or
        the share of evidence against the label. Raises NumbersMissing."""
        return sorted(zip(self.labels, self.rated(environment), strict=True), key=lambda pair: pair[1])

    def rated(self, environment: Mapping[str, float]) -> list[float]:
        """The same scores, in the order of `labels`. Raises NumbersMissing."""
        if self.predicts_costs and self._native is not None:
            return self._native.powers(self._numbers(environment))
        scores = self._scores(environment)
        if self.predicts_costs:
            return [_exp(score) if score < _MOST_LOG else _MOST for score in scores]
        if self._trees_number:
            return [1 - score / self._trees_number for score in scores]
        highest = max(scores)
        total = sum(math.exp(score - highest) for score in scores)
        return [1 - math.exp(score - highest) / total for score in scores]

    def _scores(self, environment: Mapping[str, float]) -> list[float]:
        if self._native is not None:
            return self._native.scores(self._numbers(environment))
        values = self._values(environment)
        return [constant + sum(map(float.__mul__, row, values)) for row, constant in self._lines]

    def beyond(self, environment: Mapping[str, float]) -> list[str]:
        """Names of numbers that lie outside what the model learned from: there it only guesses. More of what is there
        in plenty (`PLENTY`) changes nothing, and a little beyond is near enough (`REACH`)."""
        try:
            return [name for name, low, high in self._ends if not low <= environment[name] <= high]
        except KeyError:
            return [name for name, low, high in self._ends if not low <= environment.get(name, low) <= high]


def _native(model: _Model, path: str) -> _core.Trees | _core.Layers | None:
    """Raises ModelError."""
    if model.trees:
        return _native_trees(model, path)
    if not model.networks:
        return None
    try:
        return _core.Layers(
            numbers=len({name for feature in model.features for _, name in parts(feature)}),
            features=shapes(model.features), logarithms=model.logarithms, labels=len(model.labels),
            networks=[[(layer.weights, layer.constants) for layer in layers] for layers in model.networks],
            taken=taken(model.features),
        )  # fmt: skip
    except ValueError as exc:
        raise ModelError(path, str(exc)) from exc


def _native_trees(model: _Model, path: str) -> _core.Trees:
    """Children lie behind their parents, so that every walk ends; what is named is there. Raises ModelError."""
    roots: list[int] = []
    nodes: list[tuple[int, float, int, int]] = []
    leaves: list[float] = []
    for tree in model.trees:
        roots.append(len(nodes))
        for at, node in enumerate(tree):
            if len(node) == 1 and isinstance(node[0], list) and len(node[0]) == len(model.labels):
                nodes.append((0, 0.0, 0, len(leaves) // len(model.labels)))
                leaves += node[0]
                continue
            values = [x for x in node if isinstance(x, float | int)]
            if len(node) != 4 or len(values) != 4:
                raise ModelError(path, f"node {at} is neither inner nor a leaf of {len(model.labels)} shares")
            feature, left, right = (int(values[i]) for i in (0, 2, 3))
            if not 0 <= feature < len(model.features) or not at < min(left, right) or max(left, right) >= len(tree):
                raise ModelError(path, f"node {at} names a feature or a node that is not there")
            nodes.append((feature, float(values[1]), left, right))
    try:
        return _core.Trees(
            numbers=len({name for feature in model.features for _, name in parts(feature)}),
            features=shapes(model.features), logarithms=model.logarithms, roots=roots, nodes=nodes, leaves=leaves,
            labels=len(model.labels), taken=taken(model.features),
        )  # fmt: skip
    except ValueError as exc:
        raise ModelError(path, str(exc)) from exc


def _checked_lines(model: _Model, path: str) -> list[tuple[list[float], float]]:
    if not model.weights:
        return []
    if len(model.weights) != len(model.labels) or len(model.constants) != len(model.labels):
        raise ModelError(path, "there is not one row of weights for each label")
    if any(len(row) != len(model.features) for row in model.weights):
        raise ModelError(path, "a row of weights has not one number for each feature")
    return [(list(map(float, row)), constant) for row, constant in zip(model.weights, model.constants, strict=True)]
