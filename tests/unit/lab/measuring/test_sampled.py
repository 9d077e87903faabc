"""Samples go to the lake with their cells, and what Spark says of them takes the place of what was said before."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ringcast.lab.bounds import experiment as bounds
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Findings, Picture, Table
from ringcast.lab.measuring.rows import figure
from ringcast.lab.measuring.samples import Summary
from ringcast.lab.reservation import experiment as reservation
from ringcast.lab.yarp import experiment as yarp


class Where(NamedTuple):
    share: float
    name: str


class Told:
    """Rows of `gold.cells`: of every cell the same, but for the mean, which is its number."""

    def __init__(self, experiment: str, metric: str, cells: list[Any]) -> None:
        self._rows = [
            {"experiment": experiment, "metric": metric, "configuration": json.dumps(cell._asdict(), sort_keys=True),
             "samples": 9, "mean": float(number), "std": 0.5, "p50": 1.0, "p99": 2.0, "least": 0.5, "most": 3.0}
            for number, cell in enumerate(cells, 1)
        ]  # fmt: skip

    def rows(self, table: str) -> list[dict[str, Any]]:
        assert table == "gold.cells"
        return self._rows


def test_every_sample_of_every_repetition_is_a_value() -> None:
    found = list(sampled.values("e", {Where(0.7, "a"): [[1.0, 2.0], [3.0]]}, "m", "s"))
    assert [(one.repetition, one.value) for one in found] == [(0, 1.0), (0, 2.0), (1, 3.0)]
    assert {json.dumps(one.configuration) for one in found} == {'{"share": 0.7, "name": "a"}'}
    assert {(one.experiment, one.metric, one.unit) for one in found} == {("e", "m", "s")}


def test_cells_come_back_in_the_order_in_which_they_are_wanted() -> None:
    a, b, c = (Where(0.7, name) for name in "abc")
    found = sampled.summaries(Told("e", "m", [b, a]), "e", "m", Where, [a, b, c])
    assert list(found.items()) == [(a, Summary(9, 2.0, 0.5, 1.0, 2.0)), (b, Summary(9, 1.0, 0.5, 1.0, 2.0))]
    assert not sampled.summaries(Told("another", "m", [a]), "e", "m", Where, [a])


def test_without_spark_the_same_table_is_made_in_python() -> None:
    cell = Where(0.7, "a")
    measured = sampled.values("e", {cell: [range(60), range(60, 100)]}, "m", "s")
    (row,) = sampled.rows_of(sampled.InPython(measured), "e", "m", Where).values()
    names = ("samples", "mean", "p50", "p95", "p99", "least", "most", "total")
    assert [row[name] for name in names] == [100, 49.5, 50.0, 95.0, 99.0, 0.0, 99.0, 4950.0]


def test_what_spark_says_takes_the_place_of_what_was_said_before() -> None:
    findings = Findings([figure("a", 1.0, "us"), figure("b", 1.0, "us")], [Table("t", (), [["old"]])],
                        [Picture("p", "old", "", "", [])])  # fmt: skip
    sampled.by_spark(findings, Findings([figure("b", 2.0, "us")], [Table("t", (), [["new"]])],
                                        [Picture("p", "new", "", "", [])]))  # fmt: skip
    assert [row.value for row in findings.rows] == [1.0, 2.0]
    assert (findings.tables[0].rows, findings.pictures[0].title) == ([["new"]], "new")


def column(table: Table, head: str) -> list[str]:
    return [line[list(table.heads).index(head)] for line in table.rows]


def test_figure_5_of_paper_003_is_drawn_from_the_lake() -> None:
    cells = yarp.cells("card", quick=True)
    before = yarp._concluded("card", dict.fromkeys(cells, Summary(1, 7e-3, 7e-3, 7e-3, 7e-3)))
    told = Told(yarp.EXPERIMENT, yarp.METRIC, cells)
    yarp.conclude(before, told)
    assert column(before.tables[0], "mean us") == [f"{n * 1e6:,.0f}" for n in
                                                          range(1, len(cells) + 1)]  # fmt: skip
    assert {y for picture in before.pictures for series in picture.series for _, y in series.points} == {
        1e3 * n for n in range(1, len(cells) + 1)
    }
    assert yarp.PIPELINES == reservation.PIPELINES == ("cells",)


def test_figure_11_of_paper_001_is_drawn_from_the_lake() -> None:
    points = reservation.points(quick=True)
    before = reservation._concluded(dict.fromkeys(points, Summary(1, 7e-3, 7e-3, 7e-3, 7e-3)))
    reservation.conclude(before, Told(reservation.EXPERIMENT, reservation.METRIC, points))
    assert {y for series in before.pictures[0].series for _, y in series.points} == {2000.0}
    means = dict(zip(points, range(1, len(points) + 1), strict=True))
    assert column(before.tables[0], "mean us") == [f"{means[point] * 1e6:,.0f}" for point in sorted(points)]


def test_how_near_streams_came_to_their_bounds_is_computed_from_the_lake() -> None:
    streams = [bounds.Stream(0, at, bound) for at, bound in enumerate((4.0, 6.0, 30.0))]
    before = bounds._tightness([(1.0, 0.9)])
    bounds.conclude(before, Told(bounds.EXPERIMENT, bounds.METRIC, streams))
    assert [(row.value, row.met) for row in before.rows] == [(0.5, True), (0.75, None)]
    assert before.pictures[0].series[0].points == [(4e3, 3e3), (6e3, 3e3), (30e3, 3e3)]
