"""One page of everything: what is matched, what is said of what is missing, and how two reports differ."""

from __future__ import annotations

import argparse
import html
import io
import re
import sys
import types
from pathlib import Path

import msgspec
import pytest

from ringcast.cli.parts.labs import everything
from ringcast.lab.measuring.report import Picture, Series, Table
from ringcast.lab.measuring.rows import Row, number
from ringcast.lab.report import comparing, judging, running
from ringcast.lab.report.entries import NUMBERED, PAPERS, entries, matches, reasons
from ringcast.lab.report.gathering import FIGURES, ROWS, STATE, Figures, Run, found, from_lake, ran
from ringcast.lab.report.page import page, rows_of

RUN = Run("placement", "ringcast lab run placement --quick --json", True, 12.0, "1.0", "a machine")
ROW = Row("Table 1 (unicast): cells as in the paper", 17.0, "cells", 17.0, 17.0, True)


def left(folder: Path, run: Run = RUN, rows: tuple[Row, ...] = (ROW,)) -> None:
    place = folder / run.experiment
    place.mkdir(parents=True)
    (place / STATE).write_bytes(msgspec.json.encode(run))
    (place / ROWS).write_bytes(msgspec.json.encode([row.document() for row in rows]))
    figures = Figures(
        [Table("Table 1: adversity <derived>", ("a",), [["b & c"]])],
        [Picture("vbns", "Time", "x", "y", [Series("here", [(1.0, 2.0)])])],
    )
    (place / FIGURES).write_bytes(msgspec.json.encode(figures))
    (place / "star.svg").write_text("<?xml version='1.0'?><svg>a star</svg>")


def made(folder: Path) -> str:
    all_ran = ran(folder)
    return page(found(all_ran), all_ran, [], lambda picture, name: f"[{picture.name} as {name}]", "")


def test_every_table_and_figure_of_the_papers_has_an_entry_that_says_something() -> None:
    numbers = {paper: {"Table": set(), "Figure": set()} for paper in PAPERS}
    for entry in entries():
        kind, number = entry.label.split()
        numbers[entry.paper][kind].add(int(number))
        assert entry.experiment or entry.instead, entry.key
        assert bool(entry.experiment) == bool(entry.rows or entry.tables or entry.pictures), entry.key
    counted = {paper: (max(kinds["Table"], default=0), max(kinds["Figure"])) for paper, kinds in numbers.items()}
    assert counted == NUMBERED
    for kinds in numbers.values():
        for found_ in kinds.values():
            assert found_ == set(range(1, len(found_) + 1)), "none is left out"
    assert len({entry.key for entry in entries()}) == len(entries())


def test_names_match_by_their_beginning_or_with_a_star_anywhere() -> None:
    assert matches("Table 1: x", ("Table 1",))
    assert not matches("the Table 1", ("Table 1",))
    assert matches("round trips of TCP", ("*tcp",))
    assert matches("table 1, no proxy", ("Table 1",)), "however it is written"
    assert not matches("x", ())


def test_the_page_has_what_was_found_where_the_paper_has_it(tmp_path: Path) -> None:
    left(tmp_path)
    text = made(tmp_path)
    entry = text[text.index("<h3 id=001-table-1>") : text.index("<h3 id=001-table-2>")]
    assert "ringcast lab run placement --quick --json" in entry
    assert "Table 1: adversity &lt;derived&gt;" in entry
    assert "<td>b &amp; c" in entry
    assert "[vbns as 001-table-3-vbns]" in text
    assert "<svg>a star</svg>" in text
    assert "<?xml" not in text
    assert not re.findall(r"(?:src|href)=['\"]?https?:", text), "it fetches nothing"


def test_what_was_not_run_and_what_failed_is_said(tmp_path: Path) -> None:
    left(tmp_path)
    left(tmp_path, msgspec.structs.replace(RUN, experiment="labmap", problem="no <root>"), ())
    text = made(tmp_path)
    assert "labmap failed: no &lt;root&gt;" in text
    assert "&#x27;ringcast lab run adamant&#x27; was not run, or is not there." in text
    missed = msgspec.structs.replace(ROW, name="Table 2: cells", met=False)
    left(tmp_path / "other", rows=(missed,))
    assert "<td>placement<td>Table 2: cells<td>17<td>cells<td>17<td>17<td>not known" in made(tmp_path / "other")


def test_what_is_shown_elsewhere_does_not_hide_that_an_experiment_failed(tmp_path: Path) -> None:
    left(tmp_path, msgspec.structs.replace(RUN, experiment="conference", problem="no Chromium"), ())
    text = made(tmp_path)
    entry = text[text.index("<h3 id=000-figure-13>") : text.index("<h3 id=000-figure-14>")]
    assert "failed: no Chromium." in entry
    assert "tests/unit/conference" in entry
    contents = text[: text.index("<h2")]
    assert re.search(r"#000-figure-13'.*failed</span>", contents)


def test_what_a_quick_form_leaves_out_is_named_with_the_command_that_has_it(tmp_path: Path) -> None:
    (entry, *_) = [one for one in entries() if one.only_full]
    left(tmp_path, msgspec.structs.replace(RUN, experiment=entry.experiment), ())
    text = html.unescape(made(tmp_path))
    assert f"leaves out {entry.only_full}; 'ringcast lab run {entry.experiment}' has it." in text


def test_an_entry_that_nothing_explains_is_a_row_that_fails(tmp_path: Path) -> None:
    def row(quick: bool, notes: tuple[str, ...] = ()) -> Row:
        everything = {
            name: one._replace(run=msgspec.structs.replace(one.run, quick=quick), figures=Figures(notes=list(notes)))
            for name, one in ran(tmp_path).items()
        }
        return judging.rows(found(everything), everything, quick, None)[1]

    left(tmp_path)
    assert "001-table-2" in row(quick=True).name, "placement ran well, and has no row of Table 2"
    assert row(quick=True).met is False
    assert row(quick=False, notes=("that part was skipped: no root",)).met is True
    (tmp_path / "placement" / STATE).unlink()
    assert row(quick=True).met is True, "what was not run is said"


@pytest.mark.parametrize(("quick", "seconds", "met"), [(True, 599.0, [True]), (True, 601.0, [False]), (False, 9e3, [])])
def test_ten_minutes_are_asked_of_the_quick_form(quick: bool, seconds: float, met: list[bool]) -> None:
    rows = judging.rows(found({}), {}, quick, seconds)
    assert [row.met for row in rows if row.unit == "s"] == met
    assert rows[0].met is True
    assert judging.rows(found({})[1:], {}, quick, seconds)[0].met is False, "one has no entry"


def test_experiments_that_are_in_no_paper_have_a_part_of_their_own(tmp_path: Path) -> None:
    left(tmp_path)
    left(tmp_path, msgspec.structs.replace(RUN, experiment="adaptation"), (msgspec.structs.replace(ROW, name="phase"),))
    text = made(tmp_path)
    part = text[text.index("<h2 id=beyond>") : text.index("<h2 id=all>")]
    assert "[vbns as beyond-adaptation-vbns]" in part, "its charts, whatever they are called"
    assert "<td>phase" in part
    assert "Table 1: adversity &lt;derived&gt;" in part
    assert "'ringcast lab run security' was not run" in part
    assert "beyond-placement-vbns" not in part, "an entry shows it"
    assert "href='#beyond-adaptation'" in text


def test_without_plotly_charts_are_drawings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path)
    monkeypatch.setitem(sys.modules, "ringcast.spark.analyst.charts", None)
    everything._write(tmp_path)
    text = (tmp_path / everything.PAGE).read_text()
    assert 'aria-label="Time"' in text[text.index("<h3 id=001-table-3>") : text.index("<h3 id=001-figure-2>")]


def test_the_report_is_compared_like_an_experiment(tmp_path: Path) -> None:
    left(tmp_path)
    for seconds in (100.0, 700.0):
        everything._write(tmp_path, quick=True, seconds=seconds)
    rows = {name: row for (experiment, name), row in rows_of(ran(tmp_path)).items() if experiment == "report"}
    assert [(row.value, row.met) for row in rows.values() if row.unit == "s"] == [(700.0, False)]


def test_reasons_stand_beside_missed_rows_and_belong_to_experiments_that_exist(tmp_path: Path) -> None:
    missed = Row(
        "round trip of 64 B, proxy at publisher, arrays at their own size, against none", 2.0, "times", 1.0, 1.05
    )
    left(
        tmp_path,
        msgspec.structs.replace(RUN, experiment="push-pull"),
        (msgspec.structs.replace(missed, met=False), msgspec.structs.replace(missed, name="another", met=True)),
    )
    text = made(tmp_path)
    (why,) = {reason.why for reason in reasons() if matches(missed.name, reason.rows)}
    assert text.count(html.escape(why)) == 1
    known = {entry.experiment for entry in entries()} | {"adaptation", "reservation", "bounds", "security"}
    assert {reason.experiment for reason in reasons()} <= known


@pytest.mark.parametrize(
    ("row", "times"),
    [
        (Row("less", 10.0, "us", 50.0, 20.0, True), "5"),
        (Row("more", 300.0, "1/s", 100.0, 200.0, True), "3"),
        (Row("hardly", 90.0, "us", 100.0, 120.0, True), None),
        (Row("missed", 30.0, "us", 50.0, 20.0, False), None),
        (Row("a ratio", 1.0, "times", 50.0, 20.0, True), None),
        (Row("nothing asked", 10.0, "us", 50.0), None),
    ],
)
def test_what_is_better_by_how_much(tmp_path: Path, row: Row, times: str | None) -> None:
    left(tmp_path, rows=(row,))
    text = made(tmp_path)
    assert ("<h2>What is better</h2>" in text) == (times is not None)
    if times is not None:
        assert f"<td>{row.name}<td>{number(row.value)}<td>{row.unit}<td>{number(row.reference)}<td>{times}\n" in text


def test_many_figures_of_which_nothing_is_asked_are_folded_away(tmp_path: Path) -> None:
    figures = tuple(Row(f"Table 1 figure {n}", float(n), "us") for n in range(30))
    left(tmp_path, rows=(ROW, *figures))
    text = made(tmp_path)
    folded = "<details><summary>30 more figures</summary>"
    assert text.count(folded) == 2, "at the table, and among all rows"
    assert ROW.name in text[: text.index(folded)]


def test_what_cannot_be_read_was_not_run(tmp_path: Path) -> None:
    left(tmp_path)
    (tmp_path / "placement" / STATE).write_text("{")
    assert ran(tmp_path) == {}


def test_two_reports_differ_in_verdicts_first(tmp_path: Path) -> None:
    slower = msgspec.structs.replace(ROW, name="b", value=30.0)
    left(
        tmp_path / "a", rows=(ROW, msgspec.structs.replace(slower, value=10.0), msgspec.structs.replace(ROW, name="c"))
    )
    left(tmp_path / "b", rows=(msgspec.structs.replace(ROW, met=False), slower, msgspec.structs.replace(ROW, name="c")))
    before, after = (rows_of(ran(tmp_path / side)) for side in "ab")
    lines = comparing.cells(comparing.compared(before, after))
    assert [(line[1], line[-2], line[-1]) for line in lines] == [(ROW.name, "1.00", "no longer met"), ("b", "3.00", "")]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"value": 0.0}, {"value": 900.0}, ("from 0", "")),
        ({"value": 0.0}, {"value": 0.0}, None),
        ({"value": 100.0}, {"value": 0.0}, ("0.00", "")),
        ({"value": 100.0}, {"value": 104.0}, None),
        ({"met": None}, {"met": False}, ("1.00", "now judged: not met")),
        ({"met": None}, {"met": True}, ("1.00", "now judged: met")),
        ({"met": False}, {"met": None}, ("1.00", "no longer judged: was not met")),
        ({"met": None}, {"met": None, "value": None}, ("", "no longer measured")),
        ({"met": True}, {"met": False, "value": None}, ("", "no longer met, no longer measured")),
        ({"met": None, "value": None}, {"met": None}, ("", "now measured")),
        ({"value": -2.0}, {"value": 2.0}, ("-1.00", "")),
    ],
)
def test_no_change_is_hidden(before: dict[str, object], after: dict[str, object], said: tuple[str, str] | None) -> None:
    one, other = (msgspec.structs.replace(ROW, **fields) for fields in (before, after))
    lines = comparing.cells(comparing.compared({("a", "b"): one}, {("a", "b"): other}))
    assert [tuple(line[-2:]) for line in lines] == ([] if said is None else [said])


def test_values_are_those_that_spark_read_from_the_lake_beside_the_run_before(tmp_path: Path) -> None:
    left(tmp_path)
    told = {"experiment": "placement", "quick": True, "machine": "a machine", "figure": ROW.name, "value": 16.0,
            "unit": "cells", "reference": 17.0, "target": 17.0, "met": False, "before": 17.0}  # fmt: skip
    other = {**told, "machine": "another", "value": 1.0}
    everything = from_lake(ran(tmp_path), [told, other])
    (row,) = everything["placement"].rows
    assert (row.value, row.met, everything["placement"].before) == (16.0, False, {ROW.name: 17.0})
    text = page(found(everything), everything, [], lambda picture, name: "", "")
    assert f"<td>{ROW.name}<td>16<td>cells<td>17<td>17<td>17<td>no" in text


def test_steps_are_told_and_the_last_lines_of_the_rest_are_kept() -> None:
    said = "ringcast step: 1 of 2, first\na\n\nb\nringcast step: 2 of 2, second\nc\nd\n"
    process = types.SimpleNamespace(stderr=io.StringIO(said))
    kept: list[str] = []
    told: list[str] = []
    assert list(running._listen(process, kept.append, told.append)) == ["b", "c", "d"]  # type: ignore[arg-type]
    assert kept == told == ["1 of 2, first", "2 of 2, second"]


def test_what_was_stopped_leaves_a_page_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(everything, "run_all", stopped)
    args = argparse.Namespace(json=True, out=tmp_path, quick=True, again=False)
    with pytest.raises(KeyboardInterrupt):
        everything.run(args, {"placement": "", "labmap": ""}, tmp_path / "lake")
    text = (tmp_path / everything.PAGE).read_text()
    assert "Table 1: adversity &lt;derived&gt;" in text
    assert "&#x27;ringcast lab run labmap&#x27; was not run" in text


@pytest.mark.parametrize(("problem", "version", "runs"), [("", "1.0+a", 0), ("it broke", "1.0+a", 1), ("", "1.0+b", 1)])
def test_only_what_did_not_end_well_or_is_of_other_code_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, version: str, runs: int
) -> None:
    left(tmp_path, msgspec.structs.replace(RUN, problem=problem, version="1.0+a"))
    called: list[str] = []

    def run(name: str, *_: object, **__: object) -> Run:
        called.append(name)
        return RUN

    monkeypatch.setattr(running, "_run", run)
    running.run_all(
        ["placement"], tmp_path, tmp_path / "lake", quick=True, again=False, version=version, machine="m", say=print
    )
    assert len(called) == runs
    assert ran(tmp_path)["placement"].run.problem == ""


def test_a_chart_shows_the_papers_figures_by_a_scale_of_their_own() -> None:
    go = pytest.importorskip("plotly.graph_objects")
    from ringcast.spark.analyst import charts

    drawn = charts.bars("t", ["a"], {"here": [40.0], "paper": [6.0]}, "us")
    assert charts.on_the_right(charts.with_errors(drawn, {"here": [2.0], "paper": ()}), ["paper"], "ms") is drawn
    ours, papers = drawn.data
    assert (ours.yaxis, papers.yaxis, drawn.layout.yaxis2.title.text) == (None, "y2", "ms")
    assert ours.offsetgroup != papers.offsetgroup
    assert list(ours.error_y.array) == [2.0]
    assert papers.error_y.array is None
    lines = charts.on_the_right(charts.lines("t", {"here": [(1, 2.0)], "paper": [(1, 3.0)]}), ["paper"], "ms")
    assert isinstance(lines, go.Figure)
    assert [line.line.dash for line in lines.data] == [None, "dash"]
