"""Tables 1 and 2 of paper 002: Spark's lines beside the paper's."""

from __future__ import annotations

from typing import Any

import pytest

from ringcast.lab.labmap.paper import lines


class Told:
    def __init__(self, fits: list[dict[str, Any]], planes: list[dict[str, Any]]) -> None:
        self._tables = {lines.FITS: fits, lines.PLANES: planes}

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self._tables[table]


def fitted(model: str, side: str = "", load: str = "idle", **others: Any) -> dict[str, Any]:
    return {"model": model, "transport": "tcp", "side": side, "load": load, "subscribers": 2, "points": 4, "a": 0.25,
            "b": 1e-6, "a_error": 0.01, "b_error": None, "r2": 0.9, **others}  # fmt: skip


def test_lines_stand_beside_the_papers() -> None:
    plane = {"transport": "tcp", "load": "idle", "subscribers": 2, "r2": 0.95, "b": 1e-4, "c": 2e-4}
    other = fitted("round trip by size", transport="udp")
    latency, left_over = lines.tables(
        Told([fitted("latency"), fitted("whetstone", "publisher", "stress"), other], [plane])
    )
    assert latency.rows == [["tcp", "2", "idle", "4", "0.25 ± 0.01", "0.151", "1e-06", "1.94e-05", "0.9", "0.95",
                             "0.0001", "0.0002"]]  # fmt: skip
    assert left_over.rows == [["tcp", "2", "publisher", "4", "0.25 ± 0.01", "741", "1e-06", "-0.061", "0.9"]]


def test_the_paper_says_that_subscribers_do_not_matter_by_multicast() -> None:
    found = [
        fitted("whetstone", "subscriber", "stress", transport="multicast+nak", subscribers=number) for number in (1, 5)
    ]
    (table,) = lines.tables(Told(found, []))
    column = list(table.heads).index("paper's b")
    assert [float(row[column]) for row in table.rows] == pytest.approx([-0.059, -0.059])


def test_without_lines_there_is_no_table() -> None:
    assert lines.tables(Told([], [])) == []
