"""A curve of costs, its slope on log axes, and what its order allows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.rows import Row, at_most, entry
from ringcast.lab.measuring.report import Picture, Series

STEEPER = {"constant": 0.15, "logarithmic": 0.1, "linear": 0.15}
"""By order, by how much a curve may be steeper than one that grows just so."""


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
        return _slope([(n, cost) for n, cost in self.points if n >= self.grows_from])

    def steepest(self) -> float:
        """What its order allows. A logarithm has another slope everywhere: 0.3 at thirty, 0.1 at ten thousand."""
        if self.order == "logarithmic":
            like = _slope([(n, math.log(n)) for n, _ in self.points if n >= max(self.grows_from, 2)])
            return STEEPER[self.order] + (like or 0.0)
        return STEEPER[self.order] + (1.0 if self.order == "linear" else 0.0)

    def rows(self) -> list[Row]:
        name = f"{self.name} by {self.along}: {self.order}, slope on log axes"
        judged = at_most(name, self.slope(), "slope", self.steepest())
        return [
            judged,
            *(entry(f"{self.name} by {self.along}", str(n), "", cost, self.unit) for n, cost in self.points),
        ]

    def picture(self) -> Picture:
        points = [(math.log10(n), math.log10(max(cost, 1e-12))) for n, cost in self.points]
        title = f"{self.name} by {self.along} ({self.order})"
        file = title.partition(" (")[0].replace(" ", "-").replace(",", "").replace(":", "")
        lowest = min((y for _, y in points), default=0.0)
        return Picture(
            file, title, f"{self.along}, powers of ten", f"{self.unit}, powers of ten", [Series(self.name, points)],
            bottom=math.floor(lowest),
        )  # fmt: skip


class Curves:
    """Several curves along one number, made point by point."""

    def __init__(self, along: str) -> None:
        self._along = along
        self._curves: dict[str, tuple[str, str, int, list[tuple[int, float]]]] = {}

    def add(self, n: int, name: str, cost: float, unit: str, order: str, grows_from: int = 1) -> None:
        self._curves.setdefault(name, (unit, order, grows_from, []))[3].append((n, cost))

    def __iter__(self) -> Iterator[Curve]:
        for name, (unit, order, grows_from, points) in self._curves.items():
            yield Curve(name, self._along, unit, order, points, grows_from)

    def growth(self, name: str) -> float | None:
        """The last cost as a multiple of the first."""
        return growth(self._curves[name][3])

    def last(self, name: str) -> float:
        return self._curves[name][3][-1][1]


def growth(points: Sequence[tuple[int, float]]) -> float | None:
    return points[-1][1] / points[0][1] if len(points) > 1 else None


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Of the line through them on log axes."""
    judged = [(math.log10(n), math.log10(max(cost, 1e-12))) for n, cost in points]
    if len(judged) < 2:
        return None
    middle_x = sum(x for x, _ in judged) / len(judged)
    middle_y = sum(y for _, y in judged) / len(judged)
    spread = sum((x - middle_x) ** 2 for x, _ in judged)
    return sum((x - middle_x) * (y - middle_y) for x, y in judged) / spread
