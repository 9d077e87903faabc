"""A range of rates or sizes that a subscriber can live with, and the steps from the best of it to the least. Pure.

Steps are by factors, so that each takes the same share away: a rate and the area of a size fall to two thirds or less
slowly. With both ranges, both fall together. Invariant: the first step is the best, the last is the least.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ringcast.scaling.interface import Size, check_size
from ringcast.scaling.temporal import check_rate

RateWish = float | tuple[float, float]
"""Messages a second, or from the least to the most."""
SizeWish = Size | tuple[Size, Size]
"""A size, or from the least to the most."""

_STEP = 1.5


class Step(NamedTuple):
    """`rate_hz` is 0 where the range is of sizes only, and `size` None where it is of rates only."""

    rate_hz: float
    size: Size | None


class Range(NamedTuple):
    """From the least to the most; None is no range of that kind."""

    hz: tuple[float, float] | None = None
    size: tuple[Size, Size] | None = None

    def steps(self) -> list[Step]:
        """The best first."""
        ratios = [self.hz[1] / self.hz[0]] if self.hz else []
        if self.size:
            (width, height), (most_width, most_height) = self.size
            ratios.append(most_width * most_height / (width * height))
        number = max(1, math.ceil(math.log(max(ratios, default=1.0)) / math.log(_STEP) - 1e-9))
        return list(dict.fromkeys(self._at(index / number) for index in range(number + 1)))

    def limited(self, index: int, hz: float, size: Size | None) -> tuple[Step, bool]:
        """What is left of a step where no more than that rate and size is allowed (None is any), and whether it is less
        for that. Never less than the least."""
        steps = self.steps()
        most = math.prod(size) if size is not None else math.inf
        at = index
        while at < len(steps) - 1 and math.prod(steps[at].size or (1, 1)) > most:
            at += 1
        step = steps[at]
        if self.hz is not None:
            step = step._replace(rate_hz=max(self.hz[0], min(step.rate_hz, hz)))
        return step, step != steps[index]

    def _at(self, share: float) -> Step:
        """So far down from the best, of 1."""
        rate = between(self.hz[1], self.hz[0], share) if self.hz else 0.0
        if self.size is None:
            return Step(rate, None)
        (width, height), (most_width, most_height) = self.size
        return Step(rate, (round(between(most_width, width, share)), round(between(most_height, height, share))))


class Fidelity(NamedTuple):
    """What a subscription with a range has now. `why` says in words what does not allow more; '' while it has the best
    that it asked for."""

    rate_hz: float | None
    size: Size | None
    why: str = ""

    @property
    def best(self) -> bool:
        return not self.why


def between(most: float, least: float, share: float) -> float:
    """Both ends exactly, by factors in between."""
    return least if share >= 1 else most * (least / most) ** share


def wish(rate_hz: RateWish | None, size: SizeWish | None) -> tuple[float | None, Size | None, Range | None]:
    """The best rate and size of what was asked for, and the range if it is one. Raises ValueError."""
    hz = sizes = None
    if isinstance(rate_hz, tuple | list):
        if len(rate_hz) != 2:
            raise ValueError(f"rate_hz is a rate, or (least, most), not {rate_hz!r}")
        hz = check_rate(rate_hz[0]), check_rate(rate_hz[1])
        if hz[0] > hz[1]:
            raise ValueError(f"a range of rates goes from the least to the most: write rate_hz=({hz[1]:g}, {hz[0]:g})")
    if isinstance(size, tuple | list) and len(size) == 2 and all(isinstance(side, tuple | list) for side in size):
        sizes = check_size(size[0]), check_size(size[1])
        if sizes[0][0] > sizes[1][0] or sizes[0][1] > sizes[1][1]:
            raise ValueError(f"a range of sizes goes from the least to the most, not from {sizes[0]} to {sizes[1]}")
    best_hz = hz[1] if hz else rate_hz if rate_hz is None else check_rate(rate_hz)
    best_size = sizes[1] if sizes else size if size is None else check_size(size)
    hz = hz if hz and hz[0] < hz[1] else None
    sizes = sizes if sizes and sizes[0] != sizes[1] else None
    return best_hz, best_size, Range(hz, sizes) if hz or sizes else None
