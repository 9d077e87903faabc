"""What is said of paper 002's test is computed from the lake, and in Python where there is no Spark."""

from __future__ import annotations

from typing import Any

from lab_fakes import named

from ringcast.lab.labmap import experiment
from ringcast.lab.labmap.paper import lines, rates
from ringcast.lab.labmap.paper.rates import InPython
from ringcast.lab.labmap.results import Result
from ringcast.lab.measuring.rows import figure


def results(latency_ms: float) -> list[Result]:
    return [
        Result({"transport": "tcp", "load": "idle", "subscribers": 1, "n": n, "dt_s": 0.01}, 0,
               {"latency_ms": latency_ms, "latency_most_ms": latency_ms, "jitter_ms": latency_ms, "lost": 0.0,
                "lost_share": 0.0})
        for n in (100, 200)
    ]  # fmt: skip


class Lake:
    """The table of `rates`, of results of that latency, and one line of `fit`."""

    def __init__(self, latency_ms: float) -> None:
        line = {"model": "latency", "transport": "tcp", "side": "", "load": "idle", "subscribers": 1, "points": 2,
                "a": latency_ms, "b": 0.0, "a_error": None, "b_error": None, "r2": 1.0}  # fmt: skip
        self._tables: dict[str, list[dict[str, Any]]] = {
            rates.TABLE: InPython(results(latency_ms)).rows(rates.TABLE), lines.FITS: [line], lines.PLANES: [],
        }  # fmt: skip

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self._tables[table]


def test_statements_tables_and_pictures_are_made_from_the_lake() -> None:
    findings = experiment._concluded(InPython(results(2.0)), far_ms=0.003)
    findings.rows.append(figure("measured otherwise", 7.0, "1"))
    titles = [table.title for table in findings.tables]
    experiment.conclude(findings, Lake(3.0))
    assert named(findings, "the greatest latency, idle").value == 3.0
    assert named(findings, "far under a millisecond").value == 0.003, "it is not of the grid"
    assert named(findings, "measured otherwise").value == 7.0
    jitter = next(picture for picture in findings.pictures if picture.name == "labmap_jitter_tcp")
    assert [series.points for series in jitter.series] == [[(10_000.0, 3.0), (20_000.0, 3.0)]]
    assert [table.title for table in findings.tables[:-1]] == titles
    assert findings.tables[-1].title.startswith("Latency as a line")


def test_every_table_that_is_read_is_made_by_a_pipeline() -> None:
    assert experiment.PIPELINES == ("fit", "planes", "rates")
