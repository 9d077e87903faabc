"""How good a model is in environments that it has not seen, beside how well the experiment repeats itself. Pure.

An example is an environment that was run twice, with what each transport cost in either run. A choice is good in a run
if what it chose cost no more than `WITHIN` above the lowest there. The best of one run is not always good in the other:
that share is the ceiling, and no model can be expected to be above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ringcast.adapt.model import Chooser
from ringcast.adapt.wanting import SLACK, candidate, plain

WITHIN = 0.05
CHANCE = 2.0
"""Standard deviations by which a model must be behind another to be worse."""
FOLDER = Path(__file__).parent / "models"

Choose = Callable[[Mapping[str, float]], str]


class Examples(msgspec.Struct, frozen=True):
    """`numbers` and `transports` say what the columns mean; of `costs`, two runs by transport."""

    metric: str
    numbers: list[str]
    transports: list[str]
    environments: list[list[float]]
    costs: list[tuple[list[float], list[float]]]

    def of(self, in_order: bool) -> Examples:
        """With the transports that a model may choose from, for an order or without."""
        kept = [at for at, name in enumerate(self.transports) if candidate(name, in_order)]
        pick = [([one[at] for at in kept], [other[at] for at in kept]) for one, other in self.costs]
        return Examples(self.metric, self.numbers, [self.transports[at] for at in kept], self.environments, pick)


class Judged(NamedTuple):
    """Shares of the examples, over both runs of each."""

    share: float
    ceiling: float
    good: list[tuple[bool, bool]]


def shipped_examples(metric: str) -> Examples | None:
    """Those of the package by which models of that metric are let in, again and again; `metric` may end with
    " in order"."""
    return _examples("gate", metric)


def held_out_examples(metric: str) -> Examples | None:
    """Those of the package that say how good its own models are, and for nothing else: what has decided something about
    a model is no longer unseen. The next models of the package need others, by another digest."""
    return _examples("unseen", metric)


def _examples(kind: str, metric: str) -> Examples | None:
    base, in_order = plain(metric)
    path = FOLDER / f"{kind}-{base}.json"
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Examples)
    return found.of(in_order)


def judged(choose: Choose, examples: Examples) -> Judged:
    """What is chosen and not among the examples counts as bad."""
    slack = SLACK.get(plain(examples.metric)[0], 0.0)
    good, repeated = [], 0
    for numbers, runs in zip(examples.environments, examples.costs, strict=True):
        chosen = choose(dict(zip(examples.numbers, numbers, strict=True)))
        at = examples.transports.index(chosen) if chosen in examples.transports else None
        most = [min(run) * (1 + WITHIN) + slack for run in runs]
        good.append((at is not None and runs[0][at] <= most[0], at is not None and runs[1][at] <= most[1]))
        best = [run.index(min(run)) for run in runs]
        repeated += (runs[1][best[0]] <= most[1]) + (runs[0][best[1]] <= most[0])
    runs_number = 2 * len(good)
    return Judged(sum(map(sum, good)) / runs_number, repeated / runs_number, good)


def refusal(new: Choose, old: Choose, examples: Examples, against: str) -> str:
    """Why the new one is not to be used, '' where it is not worse. Both are judged on the same environments, so only
    those count in which they differ; a difference that chance explains is none."""
    mine, theirs = judged(new, examples), judged(old, examples)
    pairs = [(a, b) for one, other in zip(mine.good, theirs.good, strict=True) for a, b in zip(one, other, strict=True)]
    lost, won = sum(b and not a for a, b in pairs), sum(a and not b for a, b in pairs)
    if lost - won <= CHANCE * math.sqrt(lost + won):
        return ""
    return (
        f"it is worse than {against}: within {100 * WITHIN:.0f} % of the best in {mine.share:.1%} of "
        f"{len(examples.environments)} environments that neither has seen, against {theirs.share:.1%}"
    )


def unseen_by(chooser: Chooser, examples: Examples) -> Sequence[str]:
    """Numbers that the model looks at and the examples do not have."""
    return [name for name in chooser.inputs if name not in examples.numbers]
