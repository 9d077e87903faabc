"""What the pipeline `rates` made of paper 002's test, and the same without Spark. Pure.

A repetition that lost something is left out of latencies and jitter: where changes are dropped the rest travels faster
(002, section IX.B). Invariant: `InPython` has the rows that the pipeline has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringcast.lab.labmap.results import EXPERIMENT, Result
from ringcast.lab.measuring.report import Analysed

TABLE = "gold.rates"
PIPELINES = ("rates",)


class Where(NamedTuple):
    """What repetitions have in common: None where they need not."""

    transport: str
    load: str | None = None
    subscribers: int | None = None
    n: float | None = None
    dt_s: float | None = None
    rate: float | None = None


SIZES = (
    Where._fields, ("transport", "load", "subscribers", "rate"), ("transport", "load", "subscribers"),
    ("transport", "load"), ("transport", "rate"),
)  # fmt: skip


class Told(NamedTuple):
    """A metric over repetitions: all, those that lost nothing, and those that lost something."""

    runs: int
    mean: float
    most: float
    fastest: float
    kept: int
    losing: int
    kept_mean: float | None
    kept_median: float | None
    kept_most: float | None
    losing_mean: float | None
    a: float | None
    b: float | None


class Rates:
    """Rows of the table, of this experiment, by what they are of."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._found = {
            (row["metric"], Where(*(row[name] for name in Where._fields))): Told(*(row[name] for name in Told._fields))
            for row in rows if row["experiment"] == EXPERIMENT
        }  # fmt: skip

    @classmethod
    def of(cls, analysed: Analysed) -> Rates:
        return cls(analysed.rows(TABLE))

    def one(self, metric: str, where: Where) -> Told | None:
        return self._found.get((metric, where))

    def each(self, metric: str, size: Sequence[str], **wanted: object) -> dict[Where, Told]:
        """In ascending order, by these keys, all that have these values."""
        found = {
            where: told for (name, where), told in self._found.items()
            if name == metric and {key for key in Where._fields if getattr(where, key) is not None} == set(size)
            and all(getattr(where, key) == value for key, value in wanted.items())
        }  # fmt: skip
        return {where: found[where] for where in sorted(found, key=lambda one: [getattr(one, key) for key in size])}


class InPython:
    """The pipeline's table, made without Spark: what an experiment says first, and where there is none."""

    def __init__(self, results: Iterable[Result]) -> None:
        groups: dict[tuple[str, Where], list[tuple[float, float, float]]] = {}
        for one in results:
            if (lost := one.metrics.get("lost")) is None:
                continue
            n, dt_s = float(one.configuration["n"]), float(one.configuration["dt_s"])
            whole = Where(
                str(one.configuration["transport"]), str(one.configuration["load"]),
                int(one.configuration["subscribers"]), n, dt_s, round(n / dt_s, 6),
            )  # fmt: skip
            for size in SIZES:
                where = Where(**{key: getattr(whole, key) for key in size})
                for metric, value in one.metrics.items():
                    groups.setdefault((metric, where), []).append((whole.rate or 0.0, value, lost))
        self._rows = [
            {"experiment": EXPERIMENT, "metric": metric, **where._asdict(), **_told(points)._asdict()}
            for (metric, where), points in groups.items()
        ]

    def rows(self, table: str) -> list[dict[str, Any]]:
        assert table == TABLE
        return self._rows


def _told(points: Sequence[tuple[float, float, float]]) -> Told:
    """Of rates, values, and how much was lost."""
    rates, values, lost = np.array(points).T
    kept, losing = values[lost == 0], values[lost > 0]
    a = b = None
    if len(set(rates[lost == 0].tolist())) > 1:
        b, a = map(float, np.polyfit(rates[lost == 0], kept, 1))
    mean = median = most = None
    if len(kept):
        mean, median, most = float(kept.mean()), float(np.median(kept)), float(kept.max())
    return Told(
        len(values), float(values.mean()), float(values.max()), float(rates.max()), len(kept), len(losing),
        mean, median, most, float(losing.mean()) if len(losing) else None, a, b,
    )  # fmt: skip
