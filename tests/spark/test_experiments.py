"""The papers' tables, grids and histories equal what NumPy says of the same values."""

from __future__ import annotations

import datetime as dt
import statistics
import types
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.lab.adamant import rivals
from ringcast.lab.adamant.means import Means
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.samples import pooled
from ringcast.lab.push_pull import components as parts_of
from ringcast.lab.push_pull import round_trips as push_pull
from ringcast.lab.push_pull.network import INTERMEDIATE, NONE, PUBLISHER, Arrangement
from ringcast.lab.yarp.network import Cell
from ringcast.record import figures, results
from ringcast.record.figures import Measured
from ringcast.spark import jobs
from ringcast.spark.experiments.grid import grid, repeatable, winners
from ringcast.spark.lake import Lake
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import BENCHMARKS, CELLS, COMPONENTS, CONTRASTS, FITS, GRID, ROUND_TRIPS, RUNS

SIZES = (64, 512, 1024)
WANTED = [(Arrangement(hops, place), size) for hops, place in (
    (1, NONE), (1, INTERMEDIATE), (1, PUBLISHER), (2, PUBLISHER), (3, PUBLISHER)
) for size in SIZES] + [(Arrangement(1, NONE, 4), size) for size in SIZES]  # fmt: skip


@pytest.fixture(scope="module")
def batches() -> dict[tuple[Arrangement, int], list[list[int]]]:
    random = np.random.default_rng(6)
    return {
        (one, size): [
            random.normal(10_000 + 4_000 * (one.proxy == INTERMEDIATE) + (2_000 + 3 * size) * one.hops, 300, 25)
            .astype(int).tolist()
            for _ in range(5)
        ]
        for one, size in WANTED
    }  # fmt: skip


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, batches) -> Lake:  # type: ignore[no-untyped-def]
    made = Lake(spark, tmp_path_factory.mktemp("lake"))
    older = {key: [[1] * 3] for key in batches}
    for some in (older, batches):
        results.keep([*push_pull.measured(some), *push_pull.paper()], made.path)
    for name in push_pull.PIPELINES:
        jobs.run(name, made)
    return made


class Told:
    def __init__(self, lake: Lake) -> None:
        self._tables = {table.name: table for table in (ROUND_TRIPS, CONTRASTS, FITS, GRID)}
        self._lake = lake

    def rows(self, table: str) -> list[dict[str, object]]:
        return [row.asDict() for row in self._lake.read(self._tables[table]).collect()]


def test_the_tables_of_push_pull_equal_loops_over_the_samples(lake: Lake, batches) -> None:  # type: ignore[no-untyped-def]
    seen = push_pull.RoundTrips.of(Told(lake))
    for (one, size), rounds in batches.items():
        middle = sorted(rounds, key=statistics.fmean)[2]
        found = seen.summary(one, size)
        assert found.mean == pytest.approx(statistics.fmean(middle) / 1e3)
        assert found.std == pytest.approx(statistics.pstdev(middle) / 1e3)
        assert found.p50 == pytest.approx(np.percentile(np.ravel(rounds), 50, method="inverted_cdf") / 1e3)

    def p50(batch: list[int]) -> float:
        return float(np.percentile(batch, 50, method="inverted_cdf"))

    far, near = batches[Arrangement(1, INTERMEDIATE), 64], batches[Arrangement(1, NONE), 64]
    ratio = statistics.median(p50(a) / p50(b) for a, b in zip(far, near, strict=True))
    assert seen.ratio(Arrangement(1, INTERMEDIATE), 64, "proxy", NONE) == pytest.approx(ratio)
    far, near = batches[Arrangement(3, PUBLISHER), 512], batches[Arrangement(1, PUBLISHER), 512]
    apart = statistics.median((p50(a) - p50(b)) / 1e3 for a, b in zip(far, near, strict=True))
    assert seen.difference(Arrangement(3, PUBLISHER), 512, "hops", 1) == pytest.approx(apart)
    with pytest.raises(KeyError):  # two things differ
        seen.ratio(Arrangement(2, PUBLISHER), 64, "proxy", NONE)


def test_the_regressions_of_paper_001_equal_least_squares(lake: Lake) -> None:
    seen = push_pull.RoundTrips.of(Told(lake))
    one = Arrangement(2, PUBLISHER)
    means = [seen.summary(one, size).mean for size in SIZES]
    assert seen.correlation(push_pull.BY_SIZE, one, 2) == pytest.approx(np.corrcoef(SIZES, means)[0, 1])
    added = [0.0, *(seen.difference(Arrangement(hops, PUBLISHER), 64, "hops", 1) for hops in (2, 3))]
    straight = seen.correlation(f"{push_pull.BY_HOPS}, 64 B", Arrangement(1, PUBLISHER), None)
    assert straight == pytest.approx(np.corrcoef((1, 2, 3), added)[0, 1])
    routers = [seen.difference(Arrangement(3, PUBLISHER), size, "hops", 1) for size in SIZES]
    assert seen.correlation(push_pull.ROUTERS, Arrangement(3, PUBLISHER), 3) == pytest.approx(
        np.corrcoef(SIZES, routers)[0, 1]
    )
    # The paper's own figures, looked at in the same way: its Table 2 for one subscriber.
    theirs = seen.correlation(push_pull.BY_SIZE, Arrangement(1, NONE), 1, push_pull.PAPER)
    assert theirs == pytest.approx(0.89, abs=0.01)


def test_the_components_of_a_delay_are_medians_of_parts_and_their_differences(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, random = Lake(spark, tmp_path), np.random.default_rng(7)
    parts = {name: random.normal(at, 90, 31).tolist() for at, name in enumerate(
        (parts_of.ALONE, parts_of.HEARD, parts_of.WOKEN, parts_of.WHOLE_WAY, parts_of.TAKEN), start=5
    )} | {parts_of.RECEIVER: [7000.0]}  # fmt: skip
    places = {place: dict(parts) for place in parts_of.PLACES}
    places[parts_of.REMOTE][parts_of.BETWEEN_BOTH] = [9500.0]
    results.keep([one for place, some in places.items() for one in parts_of.measured(place, some)], tmp_path)
    jobs.run(parts_of.PIPELINE, lake)
    found = parts_of.components([row.asDict() for row in lake.read(COMPONENTS).collect()])
    middle = {name: float(np.median(values)) / 1e3 for name, values in parts.items()}
    near = {
        "publisher cpu": middle[parts_of.ALONE], "subscriber ipc": middle[parts_of.WOKEN],
        "publisher communication": middle[parts_of.HEARD] - middle[parts_of.ALONE],
        "subscriber receiving": 7.0, "subscriber cpu": middle[parts_of.TAKEN], "whole": middle[parts_of.WHOLE_WAY],
    }  # fmt: skip
    for place in parts_of.PLACES:
        more = {"proxy cpu": 7.0, "proxy communication": 2.5} if place == parts_of.REMOTE else {}
        assert found[place] == pytest.approx({**near, **more})


def runs(spark: SparkSession, values: list[tuple[int, int, str, float]], metric: str = "relate2") -> DataFrame:
    """(receivers, repetition, transport, value)"""
    rows = [
        ("e", f'{{"receivers": {n}, "loss_percent": 1, "burst": 1, "rate_hz": 10, "transport": "{name}"}}', repetition,
         metric, value, "ms", "m", "v", "run", dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
        for n, repetition, name, value in values
    ]  # fmt: skip
    return spark.createDataFrame(rows, RESULTS.schema)


COSTS = {(1, 0): (1.0, 2.0), (1, 1): (1.0, 2.0), (2, 0): (3.0, 2.0), (2, 1): (1.0, 2.0), (3, 0): (1.0, 1.1),
         (3, 1): (1.04, 1.0)}  # fmt: skip
VALUES = [(*where, name, cost) for where, pair in COSTS.items() for name, cost in zip("ab", pair, strict=True)]


def test_a_grid_has_means_and_places_and_says_how_far_it_repeats_itself(spark: SparkSession) -> None:
    found = grid(runs(spark, VALUES)).cache()
    row = found.where("receivers = 2 and transport = 'a'").first()
    assert row is not None
    assert (row["mean"], row.least, row.most, row.repetitions, row.place) == (2.0, 1.0, 3.0, 2, 1)
    assert {(r.transport, r.environments) for r in winners(found).collect()} == {("a", 3)}
    assert repeatable(runs(spark, VALUES), "relate2") == pytest.approx(2 / 3)
    more = grid(runs(spark, VALUES, "delivered"))
    assert {(r.transport, r.environments) for r in winners(more).collect()} == {("b", 2), ("a", 1)}, "more is better"
    means = Means([r.asDict() for r in found.collect()], ["a", "b"])
    assert [list(values.values()) for values in means.by_cell("e", "relate2").values()] == [
        [1.0, 2.0], [2.0, 2.0], [pytest.approx(1.02), pytest.approx(1.05)],
    ]  # fmt: skip


def test_cells_are_all_samples_of_all_repetitions_of_the_last_run(spark: SparkSession, tmp_path: Path) -> None:
    lake, random = Lake(spark, tmp_path), np.random.default_rng(8)
    batches = {
        cell: [random.exponential(1e-3, 70).tolist() for _ in range(5)]
        for cell in (Cell("card", "udp", "udp", share, "both", 64) for share in (0.0, 0.7))
    }
    older = {cell: [[1.0]] for cell in batches}
    for some in (older, batches):
        results.keep(sampled.values("yarp", some, "round_trip_under_load", "s"), tmp_path)
    results.keep([Measured("e", {"transport": "nak", "receivers": 3}, 0, "relate2", 1.0, "ms")], tmp_path)
    for name in sampled.PIPELINES:
        jobs.run(name, lake)
    rows = [row.asDict() for row in lake.read(CELLS).collect()]
    assert {row["experiment"] for row in rows} == {"yarp"}, "the grid has those that name a transport"
    assert {(row["repetitions"], row["unit"]) for row in rows} == {(5, "s")}
    spans = {(row["least"], row["most"]) for row in rows}
    assert spans == {(min(flat), max(flat)) for some in batches.values() for flat in [np.ravel(some).tolist()]}
    told = types.SimpleNamespace(rows=lambda table: rows)
    in_python = sampled.InPython(sampled.values("yarp", batches, "round_trip_under_load", "s"))
    for cell, row in sampled.rows_of(in_python, "yarp", "round_trip_under_load", Cell).items():
        said = sampled.rows_of(told, "yarp", "round_trip_under_load", Cell)[cell]
        for name in ("samples", "mean", "std", "p50", "p95", "p99", "least", "most", "total"):
            assert said[name] == pytest.approx(row[name]), name
    found = sampled.summaries(told, "yarp", "round_trip_under_load", Cell, batches)
    assert len(found) == 2
    for cell, summary in found.items():
        # As the code says that says it without Spark: p99 is the same rank.
        assert summary == pytest.approx(pooled(batches[cell]))


def test_runs_of_the_rivals_are_read_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)

    def one(transport: str, repetition: int, metric: str, value: float) -> Measured:
        where = {"receivers": 3, "loss_percent": 1, "burst": 1, "rate_hz": 25, "transport": transport}
        return Measured("adamant", where, repetition, metric, value, "ms")

    values = [one("nak", 0, "relate2", 2.0), one("nak", 1, "relate2", 2.0), one("lateral:r=4,c=3", 0, "relate2", 1.0),
              one("lateral:r=4,c=3", 1, "relate2", 3.0)]  # fmt: skip
    results.keep([*values, one("udp", 0, "relate2", 9.0), one("nak", 0, "naks", 9.0)], tmp_path)
    jobs.run(rivals.PIPELINE, lake)
    found = rivals.Runs([row.asDict() for row in lake.read(RUNS).collect()], "adamant")
    assert lake.read(RUNS).count() == len(values)
    assert rivals.wins(found.rivals("relate2"), 4) == (1, 2)
    assert [(row.value, row.reference) for row in rivals.rows(found)] == [(50.0, 55.0)]


def test_a_history_compares_runs_of_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)

    def keep(value: float, met: bool, machine: str = "a", quick: bool = True) -> None:
        row = {"name": "delay", "value": value, "unit": "us", "reference": None, "target": 5.0, "met": met}
        results.keep(figures.measured("bench idle", [row], quick=quick), tmp_path, machine=machine, version="1")

    keep(4.0, True)
    keep(6.0, False, machine="a, 8 GiB RAM")  # memory makes no other machine
    keep(1.0, True, machine="b")
    keep(2.0, True, quick=False)
    run = jobs.run("history", lake)
    assert run.outputs == {BENCHMARKS.name: 4}
    own = lake.read(BENCHMARKS).where("machine like 'a%' and quick").orderBy("number").collect()
    assert [(r.value, r.before, r.met, r.latest) for r in own] == [(4.0, None, True, False), (6.0, 4.0, False, True)]
    assert own[1].change == pytest.approx(0.5)
    assert own[0].figure == "delay"
    others = lake.read(BENCHMARKS).where(F.col("number") == 1).where("latest").collect()
    assert sorted(row.value for row in others) == [1.0, 2.0]


def test_runs_that_are_there_are_not_taken_in_again(spark: SparkSession, tmp_path: Path) -> None:
    other, lake = Lake(spark, tmp_path / "other"), Lake(spark, tmp_path / "lake")
    results.keep([Measured("e", {"receivers": 3, "transport": "nak"}, 0, "relate2", 1.0, "ms")], other.path)
    for _ in range(2):
        jobs.run("grid", lake, source=other.read(RESULTS))
    assert lake.read(RESULTS).count() == 1
    assert lake.read(GRID).count() == 1
