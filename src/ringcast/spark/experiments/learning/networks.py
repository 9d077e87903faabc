"""Neural networks that predict several numbers at once. Pure; tasks of Spark run it.

Costs of transports are smooth in the logarithms of an environment's numbers, and a tree makes stairs of what is smooth.
Two layers of `hidden` values follow each other, between them x becomes x / (1 + |x|), which native code computes
without a table. Several networks learn the same rows from other beginnings and in another order, and their mean is what
is exported: each is wrong elsewhere. The same seed gives the same networks.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8
"""Of Adam: how much of the mean and of the mean square a step keeps."""


class Settings(NamedTuple):
    networks: int = 4
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 400
    batch: int = 128
    rate: float = 3e-3
    decay: float = 1e-3
    """The share of a weight that a step takes away, in times its rate."""
    warm_up: int = 200
    """Steps until the rate is reached; from there on it falls to nothing, as a cosine does."""


def fit(values: Floats, wanted: Floats, seed: int, settings: Settings = Settings()) -> list[list[dict[str, Any]]]:
    """Networks over the columns of `values`, whose sum is `wanted`, in the form that `ringcast.adapt` reads. What is
    wanted may be unknown (NaN): such a number teaches nothing."""
    middle, width = values.mean(0), values.std(0)
    width = np.where(width > 0, width, 1.0)
    unknown = np.isnan(wanted)
    known = np.maximum((~unknown).sum(0), 1)
    base = np.where(unknown, 0.0, wanted).sum(0) / known
    left_over = np.where(unknown, 0.0, wanted - base)
    scale = float(np.sqrt((left_over**2).sum() / known.sum())) or 1.0
    rows = ((values - middle) / width).astype(np.float32)
    targets, counts = (left_over / scale).astype(np.float32), (~unknown).astype(np.float32)
    found = []
    for number in range(settings.networks):
        chance = np.random.default_rng([seed, number])
        weights, constants = _learned(rows, targets, counts, chance, settings)
        found.append(_written(weights, constants, (middle, width), (base, scale), settings.networks))
    return found


def _learned(
    rows: Singles, targets: Singles, counts: Singles, chance: np.random.Generator, settings: Settings
) -> tuple[list[Singles], list[Singles]]:
    sizes = (rows.shape[1], *settings.hidden, targets.shape[1])
    weights = [_begun(chance, inputs, outputs) for inputs, outputs in itertools.pairwise(sizes)]
    weights[-1] *= np.float32(0.1)
    constants = [np.zeros(outputs, np.float32) for outputs in sizes[1:]]
    all_of = [*weights, *constants]
    means, squares = ([np.zeros_like(one) for one in all_of] for _ in range(2))
    a_round = -(-len(rows) // settings.batch)
    step, steps = 0, settings.epochs * a_round
    for _ in range(settings.epochs):
        order = chance.permutation(len(rows))
        for first in range(0, len(rows), settings.batch):
            some = order[first : first + settings.batch]
            step += 1
            values = _forward(rows[some], weights, constants)
            error = (values[-1] - targets[some]) * counts[some] * np.float32(2 / some.size / targets.shape[1])
            rate = settings.rate * min(1.0, step / settings.warm_up) * (1 + math.cos(math.pi * step / steps)) / 2
            slopes = _backward(values, weights, error)
            for at, (one, slope) in enumerate(zip(all_of, slopes, strict=True)):
                means[at] += np.float32(1 - _FIRST) * (slope - means[at])
                squares[at] += np.float32(1 - _SECOND) * (slope * slope - squares[at])
                mean, square = means[at] / (1 - _FIRST**step), squares[at] / (1 - _SECOND**step)
                if one.ndim > 1:
                    one *= np.float32(1 - rate * settings.decay)
                one -= np.float32(rate) * (mean / (np.sqrt(square) + np.float32(_TINY))).astype(np.float32)
    return weights, constants


def _begun(chance: np.random.Generator, inputs: int, outputs: int) -> Singles:
    return (chance.normal(size=(inputs, outputs)) / math.sqrt(inputs)).astype(np.float32)


def _forward(rows: Singles, weights: list[Singles], constants: list[Singles]) -> list[Singles]:
    """What each layer was given, and what the last one gives."""
    values = [rows]
    for at, (weight, constant) in enumerate(zip(weights, constants, strict=True)):
        sums = values[-1] @ weight + constant
        values.append(sums if at == len(weights) - 1 else sums / (1 + np.abs(sums)))
    return values


def _backward(values: list[Singles], weights: list[Singles], slope: Singles) -> list[Singles]:
    """By weight and then by constant, how the error changes with it."""
    of_weights, of_constants = [], []
    for at in range(len(weights) - 1, -1, -1):
        of_weights.append(values[at].T @ slope)
        of_constants.append(slope.sum(0))
        if at:
            slope = (slope @ weights[at].T) * (1 - np.abs(values[at])) ** 2
    return [*reversed(of_weights), *reversed(of_constants)]


def _written(
    weights: list[Singles], constants: list[Singles], inputs: tuple[Floats, Floats], outputs: tuple[Floats, float],
    networks: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """Inputs and outputs as they are, not as they were learned; each network has its share of the mean."""
    (middle, width), (base, scale) = inputs, outputs
    rows = [weight.astype(np.float64) for weight in weights]
    added = [constant.astype(np.float64) for constant in constants]
    rows[0] = rows[0] / width[:, None]
    added[0] = added[0] - middle @ rows[0]
    rows[-1], added[-1] = rows[-1] * scale / networks, (added[-1] * scale + base) / networks
    return [
        {"weights": [float(f"{x:.6g}") for x in row.ravel()], "constants": [float(f"{x:.6g}") for x in more]}
        for row, more in zip(rows, added, strict=True)
    ]
