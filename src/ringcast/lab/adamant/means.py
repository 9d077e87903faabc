"""What the pipeline `grid` made of the runs: means by environment and transport, and who is best where. Pure.

Nothing is computed here: rows of `gold.grid` in, lookups out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ringcast.lab.adamant.grid import Cell
from ringcast.lab.measuring.report import Analysed

TABLE = "gold.grid"
PIPELINES = ("grid", "runs")
ByCell = dict[Cell, dict[str, float]]
"""A mean by transport, of each environment."""


class Means:
    """`transports` is the order in which those are told."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], transports: Sequence[str]) -> None:
        at = {name: number for number, name in enumerate(transports)}
        self._by_metric: dict[tuple[str, str], ByCell] = {}
        self._best: dict[tuple[str, str], Counter[str]] = {}
        known = sorted(rows, key=lambda row: (at.get(row["transport"], len(at)), row["transport"]))
        for row in known:
            key = row["experiment"], row["metric"]
            if row["receivers"] is None:
                continue
            cell = Cell(row["receivers"], row["loss_percent"] / 100, row["burst"], row["rate_hz"])
            self._by_metric.setdefault(key, {}).setdefault(cell, {})[row["transport"]] = row["mean"]
            best = self._best.setdefault(key, Counter())
            best[row["transport"]] += row["place"] == 1

    @classmethod
    def of(cls, analysed: Analysed, transports: Sequence[str]) -> Means:
        return cls(analysed.rows(TABLE), transports)

    def by_cell(self, experiment: str, metric: str) -> ByCell:
        """Empty when nothing of it was run."""
        return dict(sorted(self._by_metric.get((experiment, metric), {}).items()))

    def wins(self, experiment: str, metric: str) -> dict[str, int]:
        """In how many environments each transport is best."""
        return dict(self._best.get((experiment, metric), {}))
