"""A curve of costs, its slope on log axes, and what its order allows. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.rows import Row, at_most, entry
from ringcast.lab.measuring.report import Picture, Series

STEEPEST = {"constant": 0.15, "logarithmic": 0.3, "linear": 1.15}
"""By order, the slope that a curve of it may have. A logarithm over four decades looks like a slope of 0.2."""


@dataclass(frozen=True)
class Curve:
    """`points` are (n, cost). The order is judged from `grows_from` on: below, what any n costs hides it."""

    name: str
    along: str
    unit: str
    order: str
    points: Sequence[tuple[int, float]]
    grows_from: int = 1

    def slope(self) -> float | None:
        judged = [(math.log10(n), math.log10(max(cost, 1e-12))) for n, cost in self.points if n >= self.grows_from]
        if len(judged) < 2:
            return None
        middle_x = sum(x for x, _ in judged) / len(judged)
        middle_y = sum(y for _, y in judged) / len(judged)
        spread = sum((x - middle_x) ** 2 for x, _ in judged)
        return sum((x - middle_x) * (y - middle_y) for x, y in judged) / spread

    def rows(self) -> list[Row]:
        name = f"{self.name} by {self.along}: {self.order}, slope on log axes"
        judged = at_most(name, self.slope(), "slope", STEEPEST[self.order])
        return [
            judged,
            *(entry(f"{self.name} by {self.along}", str(n), "", cost, self.unit) for n, cost in self.points),
        ]

    def picture(self) -> Picture:
        points = [(math.log10(n), math.log10(max(cost, 1e-12))) for n, cost in self.points]
        title = f"{self.name} by {self.along} ({self.order})"
        file = title.partition(" (")[0].replace(" ", "-").replace(",", "")
        lowest = min((y for _, y in points), default=0.0)
        return Picture(
            file, title, f"{self.along}, powers of ten", f"{self.unit}, powers of ten", [Series(self.name, points)],
            bottom=math.floor(lowest),
        )  # fmt: skip


def growth(curve: Curve) -> float | None:
    """The last cost as a multiple of the first."""
    return curve.points[-1][1] / curve.points[0][1] if len(curve.points) > 1 else None
