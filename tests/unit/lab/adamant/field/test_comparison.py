from __future__ import annotations

from ringcast.lab.adamant.field import comparison
from ringcast.lab.adamant.field.comparison import Comparison
from ringcast.lab.adamant.grid import Cell
from ringcast.lab.adamant.results import METRICS, Result

CELL = Cell(2, 0.03, 1.0, 100.0)


def results_of(transport: str, cell: Cell, **metrics: float) -> Result:
    return Result("x", {"transport": transport}, 0, {**dict.fromkeys(METRICS, 1.0), **metrics})


def compared(transport: str, cell: Cell, delivered: float, relate2: float) -> Comparison:
    predicted = tuple(results_of(transport, cell, delivered=100.0, relate2=value) for value in (1.0, 3.0))
    return Comparison(cell, transport, results_of(transport, cell, delivered=delivered, relate2=relate2), predicted)


def test_measured_stands_beside_predicted() -> None:
    lossy, calm = CELL, Cell(2, 0.0, 1.0, 100.0)
    found = [compared("udp", calm, 99.0, 4.0), compared("udp", lossy, 97.0, 4.0), compared("nak", lossy, 100.0, 3.0)]
    findings = comparison.conclude(found)
    table = next(table for table in findings.tables if table.title.startswith("ReLate2"))
    assert table.rows[1][1:] == ["udp", "4", "2", "1 to 3", "+2"]
    asked = [row for row in findings.rows if row.kind == "asked"]
    assert [(row.value, row.target, row.met) for row in asked] == [(100.0, 100, True)]
    (shape,) = [row for row in findings.rows if row.kind == "shape"]
    assert (shape.value, shape.reference, shape.met) == (0.75, 1.0, True)
    assert {picture.name for picture in findings.pictures} == {
        f"field-{metric}-2-receivers-3-percent-100-hz"
        for metric in ("lost", "latency-mean", "latency-std", "relate2", "relate")
    }
    lost = next(picture for picture in findings.pictures if "lost" in picture.name)
    assert [series.points for series in lost.series] == [[(0.0, 3.0), (1.0, 0.0)], [(0.0, 0.0), (1.0, 0.0)]]


def test_a_repair_that_failed_on_a_real_network_is_not_met() -> None:
    rows = comparison.conclude([compared("nak", CELL, 99.99, 3.0)]).rows
    assert [row.met for row in rows if row.kind == "asked"] == [False]
