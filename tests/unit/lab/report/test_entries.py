"""What stands at a table or figure of a paper belongs there: the same quantity, receivers, loss and rate."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ringcast.lab.adamant import requirements, rivals
from ringcast.lab.adamant.field import comparison
from ringcast.lab.adamant.field.comparison import Comparison
from ringcast.lab.adamant.field.plan import field_plan
from ringcast.lab.adamant.grid import TRANSPORTS, Cell, paper_grid
from ringcast.lab.adamant.means import Means
from ringcast.lab.adamant.report import CROWDS, PAPERS
from ringcast.lab.adamant.report import conclude as tables_and_pictures
from ringcast.lab.adamant.results import METRICS, Result
from ringcast.lab.measuring.report import Findings
from ringcast.lab.report.entries import Entry, entries, matches

QUANTITIES = {"Latency": "latency", "Updates received": "delivered", "Packets received": "delivered",
              "ReLate": "ReLate", "ReLate2": "ReLate2"}  # fmt: skip
"""What a figure's title begins with: how our rows call it."""


def named() -> Findings:
    """Everything that the full form of the experiment calls by a name, by its own code, of values that mean nothing."""
    cells = paper_grid(quick=False).cells
    flat = {cell: dict.fromkeys(TRANSPORTS, 1.0) for cell in cells}
    found = Findings(
        rows=[*requirements.relate2(flat), *requirements.latencies(flat), *requirements.lowest(flat, flat)]
    )
    for transport, receivers, loss, target in requirements.DELIVERED:
        found.rows.append(requirements.delivered_row(transport, receivers, loss, target, 1.0))
    where = [(cell, name, metric) for cell in cells for name in TRANSPORTS for metric in METRICS]
    keyed = [
        {"receivers": cell.receivers, "loss_percent": 100 * cell.loss, "burst": cell.burst, "rate_hz": cell.rate_hz,
         "transport": name, "metric": metric, "mean": 1.0, "value": 1.0, "place": 1, "repetition": 0}
        for cell, name, metric in where
    ]  # fmt: skip
    rows = [{**row, "experiment": experiment} for row in keyed for experiment in (PAPERS, CROWDS)]
    many = [{**row, "receivers": 100} for row in rows if row["experiment"] == CROWDS and row["receivers"] == 25]
    grid = Means([*(row for row in rows if row["experiment"] == PAPERS), *many], TRANSPORTS)
    found.add(tables_and_pictures(grid, rivals.Runs(rows, PAPERS)))
    plan = field_plan(quick=False)
    found.add(comparison.conclude([
        Comparison(cell, one.name, result, (result,))
        for cell in (*plan.cells, *plan.slow_cells) for one in plan.contenders
        for result in [Result("adamant field", {}, 0, dict.fromkeys(METRICS, 1.0))]
    ]))  # fmt: skip
    return found


@pytest.fixture(scope="module")
def all_named() -> Findings:
    return named()


ROWS: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("row_names.toml").read_text())
"""By experiment: names of rows that were really written, and the entries to which each belongs."""


def chosen(experiment: str) -> list[Entry]:
    """Entries that do not simply have all rows of it."""
    return [entry for entry in entries() if entry.experiment == experiment and entry.rows != ("*",)]


@pytest.mark.parametrize(("experiment", "name"), [(one, name) for one in ROWS for name in ROWS[one]])
def test_a_row_stands_where_it_belongs_and_nowhere_else(experiment: str, name: str) -> None:
    assert [entry.key for entry in chosen(experiment) if matches(name, entry.rows)] == ROWS[experiment][name]


@pytest.mark.parametrize("entry", [entry for one in ROWS for entry in chosen(one)], ids=lambda entry: entry.key)
def test_every_pattern_is_of_rows_that_are_written(entry: Entry) -> None:
    for pattern in entry.rows:
        assert any(matches(name, (pattern,)) for name in ROWS[entry.experiment]), pattern


FIGURES = [entry for entry in entries() if entry.paper == "004" and entry.experiment and " " in entry.title
           and entry.title.partition(",")[0] in QUANTITIES]  # fmt: skip


def stated(text: str) -> dict[str, set[str]]:
    """Receivers, loss and rate that a title or the name of a row speaks of."""
    return {
        "receivers": set(re.findall(r"(\d+) (?:readers|receivers)", text)),
        "loss": set(re.findall(r"(\d+) % (?:kernel )?loss", text)),
        "rate": set(re.findall(r"(\d+) Hz", text)),
    }


@pytest.mark.parametrize("entry", FIGURES, ids=lambda entry: entry.key)
def test_rows_of_a_figure_are_of_its_quantity_and_its_environment(entry: Entry, all_named: Findings) -> None:
    quantity = QUANTITIES[entry.title.partition(",")[0]]
    rows = [row.name for row in all_named.rows if matches(row.name, entry.rows)]
    assert rows, "every figure has a number beside its chart"
    wanted = stated(entry.title)
    for name in rows:
        assert re.search(rf"\b{quantity}\b", name, re.IGNORECASE), name
        said = stated(name)
        for what in ("receivers", "loss"):
            assert not said[what] or not wanted[what] or said[what] & wanted[what], name
        if "real network" in name:
            assert not wanted["rate"] or said["rate"] == wanted["rate"], name
        for r in re.findall(r"r=(\d)", entry.title):
            assert f"r={r}" in name, name


@pytest.mark.parametrize("entry", FIGURES, ids=lambda entry: entry.key)
def test_every_pattern_of_a_figure_finds_something(entry: Entry, all_named: Findings) -> None:
    rows = [row.name for row in all_named.rows]
    pictures = [picture.name for picture in all_named.pictures]
    for pattern in entry.rows:
        assert any(matches(name, (pattern,)) for name in rows), pattern
    for pattern in entry.pictures:
        assert any(matches(name, (pattern,)) for name in pictures), pattern


def test_figures_show_what_was_measured_on_a_real_network() -> None:
    simulated_only = {"004-figure-16", "004-figure-17", "004-figure-18"}  # r=8 is not run there
    for entry in FIGURES:
        assert any("field-" in name for name in entry.pictures) == (entry.key not in simulated_only), entry.key
    assert len(FIGURES) == 14


def test_a_metric_is_not_taken_for_one_whose_name_begins_alike() -> None:
    (relate,) = [entry for entry in FIGURES if entry.title.startswith("ReLate,")]
    assert not matches("ReLate2, in order, the least of nak by the least of udp, multicast, tcp", relate.rows)
    assert not matches("relate2-3-receivers-3-percent", relate.pictures)
    assert matches("ReLate, 3 receivers, 3 % loss, 50 Hz: the least of udp", relate.rows)
    assert Cell(3, 0.03, 1.0, 50.0) in paper_grid(quick=True).cells, "the quick form has it too"
