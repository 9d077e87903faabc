"""The paper's reliable multicast and Ricochet, run by run (paper 004, Figures 16 to 21): what the pipeline `runs` read
from the lake, as pictures, rows and what stands beside the paper's statements. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from ringcast.lab.adamant.grid import Cell
from ringcast.lab.measuring.report import Analysed, Picture, Series
from ringcast.lab.measuring.rows import Row, figure

TABLE, PIPELINE = "gold.runs", "runs"
RMCAST = "nak"
RICOCHET = {8: "lateral:r=8,c=3", 4: "lateral:r=4,c=3"}
FIRST_FIGURE = {8: 16, 4: 19}
DRAWN = (("latency_mean", "Mean latency (ms)"), ("delivered", "Updates received (%)"), ("relate2", "ReLate2 (ms)"))
PAPER_WINS = {("latency_mean", 4): 9 / 20, ("relate2", 4): 11 / 20}
"""By metric and r: the share of the paper's runs in which Ricochet was lower."""
_NAMES = {"latency_mean": "mean latency", "relate2": "ReLate2"}
_WHERE = "3 receivers, 1 % loss"


class RunKey(NamedTuple):
    rate_hz: float
    repetition: int


Values = dict[RunKey, dict[str, float]]
"""By run: a metric of each transport."""


class Runs:
    """Rows of `gold.runs`, looked up by metric."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], experiment: str) -> None:
        self._found: dict[str, dict[tuple[Cell, RunKey], dict[str, float]]] = {}
        for row in rows:
            if row["experiment"] == experiment:
                cell = Cell(row["receivers"], row["loss_percent"] / 100, row["burst"], row["rate_hz"])
                key = cell, RunKey(row["rate_hz"], row["repetition"])
                self._found.setdefault(row["metric"], {}).setdefault(key, {})[row["transport"]] = row["value"]

    @classmethod
    def of(cls, analysed: Analysed, experiment: str) -> Runs:
        return cls(analysed.rows(TABLE), experiment)

    def where(self, metric: str, holds: Callable[[Cell], bool]) -> Values:
        """Of environments of which that holds, by rate and repetition."""
        found = self._found.get(metric, {})
        return {run: values for (cell, run), values in sorted(found.items(), key=lambda one: one[0]) if holds(cell)}

    def rivals(self, metric: str) -> Values:
        """In the environments of Figures 16 to 21."""
        return self.where(metric, lambda cell: (cell.receivers, cell.loss, cell.burst) == (3, 0.01, 1.0))


def worst(values: Values, transports: Sequence[str], number: int = 2) -> list[float]:
    """Of single runs, the least first."""
    return sorted(one[name] for one in values.values() for name in transports if name in one)[:number]


def wins(values: Values, r: int) -> tuple[int, int]:
    """In how many runs Ricochet is lower than reliable multicast, and of how many."""
    both = [one for one in values.values() if {RMCAST, RICOCHET[r]} <= one.keys()]
    return sum(1 for one in both if one[RICOCHET[r]] < one[RMCAST]), len(both)


def rows(runs: Runs) -> list[Row]:
    """What the figures show, as numbers; the paper's beside it where its text has one."""
    found = []
    for r, name in RICOCHET.items():
        for metric, called in _NAMES.items():
            lower, number = wins(runs.rivals(metric), r)
            if number:
                paper = PAPER_WINS.get((metric, r))
                found.append(
                    figure(f"{called}, {_WHERE}, Ricochet with r={r}: runs where it is lower than RMcast's",
                           100 * lower / number, "%", None if paper is None else 100 * paper)
                )  # fmt: skip
        shares = [one[name] for one in runs.rivals("delivered").values() if name in one]
        if shares:
            what = f"delivered, {_WHERE}, Ricochet with r={r}: mean of {len(shares)} runs"
            found.append(Row(what, round(fmean(shares), 6), "%"))
    return found


def pictures(runs: Runs) -> list[Picture]:
    """Figures 16 to 18 (r = 8) and 19 to 21 (r = 4)."""
    made = []
    for r, coded in RICOCHET.items():
        for number, (metric, title) in enumerate(DRAWN, FIRST_FIGURE[r]):
            values = runs.rivals(metric)
            if not values or not all({RMCAST, coded} <= one.keys() for one in values.values()):
                continue
            series = [
                Series(name, [(float(at), one[name]) for at, one in enumerate(values.values())])
                for name in (RMCAST, coded)
            ]
            labels = [f"{run.rate_hz:g}" if at % 5 == 0 else "" for at, run in enumerate(values)]
            lowest = min(y for one in series for _, y in one.points)
            made.append(
                Picture(
                    f"figure-{number}-{metric.replace('_', '-')}-{coded.partition(',')[0].replace(':', '-')}",
                    f"Figure {number}: {title}, {_WHERE}, each run (simulated)",
                    "runs, by updates per second", title, series, "bars", labels,
                    bottom=math.floor(lowest) if metric == "delivered" else 0.0,
                )
            )  # fmt: skip
    return made
