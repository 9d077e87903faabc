"""Samples of an experiment's cells as values for the lake, and what the pipeline `cells` made of them. Pure.

A cell is a NamedTuple: its fields are the configuration. Its samples are those of all repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ringcast.lab.measuring.report import Analysed, Findings, Picture, Table
from ringcast.lab.measuring.rows import Row
from ringcast.lab.measuring.samples import Summary, quantile, summarise
from ringcast.record.figures import Measured

TABLE = "gold.cells"
PIPELINES = ("cells",)
Cell = TypeVar("Cell", bound=tuple[Any, ...])


def values(
    experiment: str, batches: Mapping[Cell, Sequence[Iterable[float]]], metric: str, unit: str
) -> Iterator[Measured]:
    """Every sample; the batches of a cell are its repetitions."""
    for cell, repetitions in batches.items():
        configuration = cell._asdict()  # type: ignore[attr-defined]
        for number, batch in enumerate(repetitions):
            for value in batch:
                yield Measured(experiment, configuration, number, metric, float(value), unit)


class InPython:
    """The pipeline's table of values, made without Spark: what an experiment says first, and where there is none."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        self._cells: dict[tuple[str, bytes, str], list[float]] = {}
        for one in measured:
            key = (one.experiment, msgspec.json.encode(one.configuration), one.metric)
            self._cells.setdefault(key, []).append(one.value)

    def rows(self, table: str) -> list[dict[str, Any]]:
        assert table == TABLE
        return [
            {"experiment": experiment, "configuration": configuration, "metric": metric, **_columns(samples)}
            for (experiment, configuration, metric), samples in self._cells.items()
        ]


def _columns(samples: Sequence[float]) -> dict[str, float]:
    number, mean, std, p50, p99 = summarise(samples)
    return {
        "samples": number, "mean": mean, "std": std, "p50": p50, "p95": quantile(samples, 0.95), "p99": p99,
        "least": min(samples), "most": max(samples), "total": math.fsum(samples),
    }  # fmt: skip


def rows_of(analysed: Analysed, experiment: str, metric: str, kind: type[Cell]) -> dict[Cell, Mapping[str, Any]]:
    """Rows of the table, by cell, of the experiment's last run."""
    found: dict[Cell, Mapping[str, Any]] = {}
    for row in analysed.rows(TABLE):
        if (row["experiment"], row["metric"]) == (experiment, metric):
            fields = msgspec.json.decode(row["configuration"])
            if fields.keys() == set(kind._fields):  # type: ignore[attr-defined]
                found[kind(**fields)] = row
    return found


def summaries(
    analysed: Analysed, experiment: str, metric: str, kind: type[Cell], wanted: Iterable[Cell]
) -> dict[Cell, Summary]:
    """What Spark says of the last run's cells, in the order in which they are wanted."""
    found = rows_of(analysed, experiment, metric, kind)
    return {
        cell: Summary(*(found[cell][name] for name in ("samples", "mean", "std", "p50", "p99")))
        for cell in wanted
        if cell in found
    }


def by_spark(findings: Findings, concluded: Findings) -> None:
    """Rows, tables and pictures of `findings` become those that were concluded from the lake, by their names."""
    rows: dict[str, Row] = {row.name: row for row in concluded.rows}
    tables: dict[str, Table] = {table.title: table for table in concluded.tables}
    pictures: dict[str, Picture] = {picture.name: picture for picture in concluded.pictures}
    findings.rows = [rows.get(row.name, row) for row in findings.rows]
    findings.tables = [tables.get(table.title, table) for table in findings.tables]
    findings.pictures = [pictures.get(picture.name, picture) for picture in findings.pictures]
