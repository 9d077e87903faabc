"""Paper 002's test by the pipeline `rates` equals what is computed of the same results without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from pyspark.sql import SparkSession

from ringcast.lab.labmap import results
from ringcast.lab.labmap.paper import figures, rates, statements
from ringcast.lab.labmap.paper.rates import InPython, Rates, Told, Where
from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.report import Picture
from ringcast.record.figures import Measured
from ringcast.record.results import keep
from ringcast.spark import jobs
from ringcast.spark.experiments.rates import RATES
from ringcast.spark.lake import Lake

SETTINGS = [(10, 0.01), (100, 0.01), (500, 0.05), (500, 0.01), (1000, 0.03)]
"""Two of these have one n/dt, and one n/dt has no end of digits."""


def measured() -> Iterator[Result]:
    random = np.random.default_rng(9)
    for transport, load, subscribers in itertools.product(statements.NAMES, statements.LOADS, (1, 5)):
        for (n, dt_s), repetition in itertools.product(SETTINGS, range(3)):
            where: dict[str, str | float] = {
                "transport": transport, "n": n, "dt_s": dt_s, "subscribers": subscribers, "load": load,
            }  # fmt: skip
            latency_ms = 0.2 + 1e-6 * n / dt_s + random.normal(0, 0.01)
            # By some the fastest lose something, by others everything does.
            lost = float(n > 500 and repetition > 0) * n / 10 + float(load == "stress" and subscribers == 5)
            metrics = {
                "latency_ms": latency_ms, "latency_most_ms": 5 * latency_ms, "jitter_ms": random.exponential(0.1),
                "lost": lost, "lost_share": lost / n, "publisher_cpu": 0.1 * subscribers,
            }  # fmt: skip
            if (n, repetition) == (10, 1):
                del metrics["jitter_ms"]  # it was not measured
            yield Result(where, repetition, metrics)
            if load == "stress":
                yield Result({**where, "side": "publisher"}, repetition, {"whetstones": 7.0})


@pytest.fixture(scope="module")
def found() -> list[Result]:
    return list(measured())


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, found: list[Result]) -> list[dict[str, object]]:
    lake = Lake(spark, tmp_path_factory.mktemp("lake"))
    older = [Result(one.configuration, one.repetition, dict.fromkeys(one.metrics, 1.0)) for one in found]
    others = [Measured("another", {"transport": "tcp", "receivers": 3}, 0, name, 1.0, "1") for name in ("lost", "cost")]
    for values in (results.measured(older), [*results.measured(found), *others]):
        keep(values, lake.path)
    for name in rates.PIPELINES:
        jobs.run(name, lake)
    return [row.asDict() for row in lake.read(RATES).collect()]


class Analysed:
    """The table, as Spark made it."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self._rows = rows

    def rows(self, table: str) -> list[dict[str, object]]:
        assert table == RATES.name
        return self._rows


def by_place(rows: list[dict[str, object]]) -> dict[tuple[object, ...], dict[str, object]]:
    """What is said at each place; what is null there is left out."""
    places = [tuple(row[name] for name in ("experiment", "metric", *Where._fields)) for row in rows]
    assert len(set(places)) == len(places), "a place has one row"
    said = [{name: row[name] for name in Told._fields if row[name] is not None} for row in rows]
    return dict(zip(places, said, strict=True))


def points(pictures: list[Picture]) -> dict[tuple[str, str, float], float]:
    return {(one.name, series.label, x): y for one in pictures for series in one.series for x, y in series.points}


def test_rows_equal_those_made_in_python(rows: list[dict[str, object]], found: list[Result]) -> None:
    said, expected = by_place(rows), by_place(InPython(found).rows(RATES.name))
    assert said.keys() == expected.keys()
    for place, values in expected.items():
        assert said[place] == pytest.approx(values, rel=1e-9, abs=1e-12), place
    assert {"b" in values for values in said.values()} == {True, False}, "some have a line, others have none"


def test_the_report_is_the_same_with_spark_and_without(rows: list[dict[str, object]], found: list[Result]) -> None:
    by_spark, in_python = Rates.of(Analysed(rows)), Rates.of(InPython(found))
    one, other = statements.rows(by_spark), statements.rows(in_python)
    assert [row.name for row in one.rows] == [row.name for row in other.rows]
    assert [row.value for row in one.rows] == pytest.approx([row.value for row in other.rows])
    assert [table.rows for table in one.tables] == [table.rows for table in other.tables]
    drawn, expected = (points(figures.pictures(table)) for table in (by_spark, in_python))
    assert drawn == pytest.approx(expected)
