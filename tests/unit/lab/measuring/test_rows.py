"""The rows that every experiment prints."""

from __future__ import annotations

import json

import msgspec
import pytest

from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import Row, at_least, at_most, cells, figure, number, scaled


def test_a_row_prints_exactly_the_promised_fields():
    row = at_most("delay", 1.23456, "us", 2.0, 4.0)
    assert json.loads(msgspec.json.encode(row.document())) == {
        "name": "delay", "value": 1.235, "unit": "us", "reference": 4.0, "target": 2.0, "met": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("judge", "value", "target", "met"),
    [
        (at_most, 2.0, 2.0, True),
        (at_most, 2.1, 2.0, False),
        (at_least, 2.0, 2.0, True),
        (at_least, 1.9, 2.0, False),
        (at_most, None, 2.0, False),
        (at_least, None, 2.0, False),
        (at_most, 2.0, None, None),
        (at_least, 2.0, None, None),
    ],
)
def test_verdicts(judge, value, target, met):
    assert judge("x", value, "us", target).met is met


def test_a_target_without_a_reference_is_none():
    assert scaled(None, 2.0) is None
    assert scaled(3.0, 2.0) == 6.0


def test_cells_for_people():
    rows = [at_most("a", 1.0, "us", 0.5, 3.0), figure("b", None, "s"), Row("c", 123456.0, "msg/s", met=True)]
    assert cells(rows) == [
        ["a", "1", "us", "3", "0.5", "no"],
        ["b", "-", "s", "", "", ""],
        ["c", "123,456", "msg/s", "", "", "yes"],
    ]
    assert number(0.00012345) == "0.0001234"


def test_a_report_has_what_is_asked_first_and_mere_figures_only_in_tables():
    findings = Findings(
        [figure("mere", 1.0, "us"), at_most("bent", 1, "r", 2, kind="shape"), at_most("asked", 1, "s", 2)]
    )
    findings.add(Findings(tables=[Table("Table 1", ["a|b", "c"], [["1", "2"]])], notes=["a note"]))
    findings.add(Findings(pictures=[Picture("p", "A picture", "x", "y", [Series("s", [])])], notes=["a note"]))
    text = findings.markdown("ringcast lab run x")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        "What is asked for", "The shapes of the paper", "Table 1",
    ]  # fmt: skip
    assert "| a/b | c |" in text
    assert "mere" not in text
    assert "![A picture](p.svg)" in text
    assert text.count("a note") == 1
