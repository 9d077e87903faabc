"""Round trips of the papers' arrangements: values for the lake, and what the pipelines `round_trips`, `contrasts` and
`fit` made of them, by arrangement. Nothing is computed here. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ringcast.lab.measuring import reference
from ringcast.lab.measuring.report import Analysed
from ringcast.lab.push_pull.network import INTERMEDIATE, NONE, Arrangement, Batches
from ringcast.record.figures import Measured

EXPERIMENT, PAPER = "push-pull", "push-pull, the paper's"
METRIC = "round_trip"
BY_SIZE, BY_HOPS, ROUTERS = "round trip by size", "round trip by hops", "routers by size"
TABLES = ("gold.round_trips", "gold.contrasts", "gold.fits")
PIPELINES = ("round_trips", "contrasts", "fit")
_PAPER_ROWS = {"1 subscriber": (NONE, 1), "4 subscribers": (NONE, 4), "8 subscribers": (NONE, 8),
               "intermediate proxy": (INTERMEDIATE, 1)}  # fmt: skip


class Summary(NamedTuple):
    """Microseconds: of the repetition with the middle mean, and the median of all."""

    mean: float
    std: float
    p50: float


def measured(batches: Batches) -> Iterator[Measured]:
    """Every round trip, in nanoseconds."""
    for (arrangement, size), rounds in batches.items():
        configuration = _configuration(arrangement, size)
        for repetition, batch in enumerate(rounds):
            for ns in batch:
                yield Measured(EXPERIMENT, configuration, repetition, METRIC, float(ns), "ns")


def paper() -> Iterator[Measured]:
    """The figures of paper 000's Tables 2 and 3, so that they are looked at in the same way."""
    for where, seconds in reference.push_pull().items():
        if where.paper == reference.PUSH_PULL and where.row in _PAPER_ROWS and where.column.endswith(" B"):
            proxy, subscribers = _PAPER_ROWS[where.row]
            size = int(where.column.removesuffix(" B"))
            configuration = _configuration(Arrangement(1, proxy, subscribers), size)
            yield Measured(PAPER, configuration, 0, METRIC, seconds * 1e9, "ns")


def _configuration(arrangement: Arrangement, size: int) -> dict[str, str | float]:
    a = arrangement
    return {"hops": a.hops, "proxy": a.proxy, "subscribers": a.subscribers, "transport": a.transport,
            "scaling": a.scaling, "size": size}  # fmt: skip


class RoundTrips:
    """Rows of the three tables, looked up by arrangement. Raises KeyError for one that was not measured."""

    def __init__(
        self, summaries: Iterable[Mapping[str, Any]], contrasts: Iterable[Mapping[str, Any]],
        lines: Iterable[Mapping[str, Any]],
    ) -> None:  # fmt: skip
        self._summaries = {
            (_arrangement(row), row["size"]): Summary(row["mean_us"], row["std_us"], row["p50_us"])
            for row in summaries if row["experiment"] == EXPERIMENT
        }  # fmt: skip
        self._contrasts = {
            (_arrangement(row), row["size"], row["varied"], row["against"]): (row["ratio"], row["difference_us"])
            for row in contrasts if row["experiment"] == EXPERIMENT
        }  # fmt: skip
        self._lines = {
            (row["experiment"], row["model"], row["proxy"], row["hops"], row["subscribers"], row["transport"]): row
            for row in lines
        }

    @classmethod
    def of(cls, analysed: Analysed) -> RoundTrips:
        return cls(*(analysed.rows(table) for table in TABLES))

    def __bool__(self) -> bool:
        """Whether any were measured."""
        return bool(self._summaries)

    def summary(self, arrangement: Arrangement, size: int) -> Summary:
        return self._summaries[arrangement, size]

    def ratio(self, arrangement: Arrangement, size: int, varied: str, against: str | int) -> float:
        """To the same with another proxy, number of subscribers or of hops: the median over repetitions."""
        found: float = self._contrasts[arrangement, size, varied, str(against)][0]
        return found

    def difference(self, arrangement: Arrangement, size: int, varied: str, against: str | int) -> float:
        """The same, in microseconds."""
        found: float = self._contrasts[arrangement, size, varied, str(against)][1]
        return found

    def correlation(
        self, model: str, arrangement: Arrangement, hops: int | None, experiment: str = EXPERIMENT
    ) -> float | None:
        """How well a line fits, from -1 to 1; None when no two x differ. A line that is level fits at 0."""
        a = arrangement
        row = self._lines.get((experiment, model, a.proxy, hops, a.subscribers, a.transport))
        if row is None:
            return None
        if row["r2"] is None:
            return 0.0
        return math.copysign(math.sqrt(row["r2"]), row["b"])


def _arrangement(row: Mapping[str, Any]) -> Arrangement:
    return Arrangement(row["hops"], row["proxy"], row["subscribers"], row["transport"], row["scaling"])
