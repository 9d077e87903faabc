"""`ringcast lab run`: what it prints and what it leaves, of findings that were made up."""

from __future__ import annotations

import argparse
import json
import sys
import types

import pytest

from ringcast.cli.parts.labs import run as lab_run
from ringcast.lab.measuring.report import Findings, Picture, Series, Table
from ringcast.lab.measuring.rows import at_most, figure
from ringcast.lab.push_pull import experiment
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.figures import Measured


@pytest.fixture
def findings(monkeypatch):
    made = Findings(
        [at_most("delay", 1.0, "us", 2.0, 4.0), figure("other", 3.0, "us")],
        [Table("Table 1", ["place", "mean"], [["near", "1.0"]])],
        [Picture("drawing", "A drawing", "x", "y", [Series("s", [(0, 1.0)])])],
        ["something is missing"],
    )
    asked = []

    def run(quick, steps):
        asked.append(quick)
        steps.expect(2)
        steps.step("measuring")
        return made

    monkeypatch.setattr(experiment, "run", run)
    made.asked = asked
    return made


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    lab_run.configure(parser)
    return lab_run.run(parser.parse_args(["push-pull", *words]))


@pytest.fixture(autouse=True)
def lake(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("results") / "lake"
    monkeypatch.setenv("RINGCAST_LAKE", str(place))
    return place


def test_json_is_one_list_of_rows_and_nothing_else(findings, tmp_path, capsys):
    assert run("--json", "--quick", "--out", str(tmp_path / "made" / "here")) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == [
        {"name": "delay", "value": 1.0, "unit": "us", "reference": 4.0, "target": 2.0, "met": True},
        {"name": "other", "value": 3.0, "unit": "us", "reference": None, "target": None, "met": None},
    ]
    assert "something is missing" in said.err
    assert findings.asked == [True]


def test_tables_for_people_and_files(findings, tmp_path, capsys):
    assert run("--out", str(tmp_path)) == 0
    said = capsys.readouterr().out
    assert said.index("Table 1") < said.index("What is asked for")
    assert (tmp_path / "report.md").read_text().startswith("# ringcast lab run push-pull\n")
    assert [row["name"] for row in json.loads((tmp_path / "rows.json").read_text())] == ["delay", "other"]
    assert (tmp_path / "drawing.svg").read_text().startswith("<svg")


def test_a_place_that_cannot_be_written_is_named_with_the_remedy(findings, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="choose another place with --out"):
        run("--out", str(tmp_path / "file"))


def test_what_was_concluded_is_kept_for_the_history(findings, lake, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    assert run("--quick", "--out", str(tmp_path)) == 0
    assert run("--quick", "--out", str(tmp_path)) == 0
    rows = deltalake.DeltaTable(lake / "bronze.results").to_pyarrow_table().to_pylist()
    assert len({row["run_id"] for row in rows}) == 2
    first = [row for row in rows if row["run_id"] == rows[0]["run_id"]]
    told = {(json.loads(row["configuration"])["figure"], row["metric"]): row["value"] for row in first}
    assert told == {("delay", "figure"): 1.0, ("delay", "reference"): 4.0, ("delay", "target"): 2.0,
                    ("delay", "met"): 1.0, ("other", "figure"): 3.0}  # fmt: skip


def test_values_are_kept_before_they_are_analysed_and_then_concluded_from(findings, lake, tmp_path, monkeypatch):
    deltalake = pytest.importorskip("deltalake")
    findings.measured = [Measured("push-pull", {"size": 64}, 0, "round_trip", 5.0, "ns")]
    seen = []

    class Analysis:
        def __init__(self, place):
            seen.append(deltalake.DeltaTable(place / "bronze.results").to_pyarrow_table().num_rows)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def run(self, pipelines, say):
            seen.append(tuple(pipelines))

    monkeypatch.setitem(sys.modules, "ringcast.spark.experiments.analysing", types.SimpleNamespace(analysis=Analysis))
    monkeypatch.setattr(experiment, "conclude", lambda found, analysed: found.notes.append("concluded"))
    assert run("--out", str(tmp_path)) == 0
    assert seen == [1, tuple(experiment.PIPELINES)]
    assert findings.notes[-1] == "concluded"


def test_a_lake_that_cannot_be_written_is_named_with_the_remedy(findings, tmp_path):
    findings.measured = [Measured("push-pull", {"size": 64}, 0, "round_trip", 5.0, "ns")]
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="choose another place with --lake"):
        run("--out", str(tmp_path / "out"), "--lake", str(tmp_path / "file"))
