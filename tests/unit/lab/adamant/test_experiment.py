"""The experiment of paper 004, on a grid small enough for a test."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest
from lab_fakes import CountedSteps

from ringcast.cli.parts.labs import run as lab_run
from ringcast.cli.program import Misuse
from ringcast.lab.adamant import environments as adamant_environments
from ringcast.lab.adamant import experiment, requirements
from ringcast.lab.adamant import report as adamant_report
from ringcast.lab.adamant import results as adamant_results
from ringcast.lab.adamant.grid import BASELINES, TRANSPORTS, Cell, Grid, paper_grid
from ringcast.lab.adamant.means import Means
from ringcast.lab.adamant.rivals import Runs
from ringcast.lab.measuring import files
from ringcast.lab.simulation.workers import workers
from ringcast.lab.testbed.cleanup import LabError


class Told:
    """The rows of `gold.grid` and `gold.runs`, as the pipelines make them of these runs."""

    def __init__(self, *runs: list[adamant_results.Result]) -> None:
        values: dict[tuple[str, Cell, str, str], list[float]] = {}
        for result in (one for some in runs for one in some):
            for metric, value in result.metrics.items():
                key = (result.experiment, requirements.cell_of(result), result.configuration["transport"], metric)
                values.setdefault(key, []).append(value)
        self._rows: list[dict[str, Any]] = [
            {"experiment": experiment, "receivers": cell.receivers, "loss_percent": 100 * cell.loss,
             "burst": cell.burst, "rate_hz": cell.rate_hz, "transport": transport, "metric": metric,
             "mean": fmean(found), "place": 1}
            for (experiment, cell, transport, metric), found in values.items()
        ]  # fmt: skip
        self._runs: list[dict[str, Any]] = [
            {"experiment": one.experiment, "receivers": cell.receivers, "loss_percent": 100 * cell.loss,
             "burst": cell.burst, "rate_hz": cell.rate_hz, "transport": one.configuration["transport"],
             "repetition": one.repetition, "metric": metric, "value": value}
            for some in runs for one in some for cell in [requirements.cell_of(one)]
            for metric, value in one.metrics.items()
        ]  # fmt: skip

    def rows(self, table: str) -> list[dict[str, Any]]:
        return {"gold.grid": self._rows, "gold.runs": self._runs}[table]


def single(results: list[adamant_results.Result]) -> Runs:
    return Runs.of(Told(results), adamant_report.PAPERS)


def means(results: list[adamant_results.Result], crowd: list[adamant_results.Result] | None = None) -> Means:
    many = [msgspec.structs.replace(one, experiment=adamant_report.CROWDS) for one in crowd or results]
    return Means.of(Told(results, many), TRANSPORTS)


CELLS = (Cell(3, 0.03, 1.0, 50.0), Cell(3, 0.01, 1.0, 100.0))


@pytest.fixture(scope="module")
def results() -> list[adamant_results.Result]:
    with workers() as pool:
        return experiment.run_grid("adamant", Grid(CELLS, TRANSPORTS, 600, 2), CountedSteps(), pool)


def test_every_run_is_there(results: list[adamant_results.Result]) -> None:
    assert len(results) == len(CELLS) * len(TRANSPORTS) * 2
    assert {result.repetition for result in results} == {0, 1}


def test_the_papers_grid_is_all_there() -> None:
    grid = paper_grid(quick=False)
    assert {cell.rate_hz for cell in grid.cells} == {10, 25, 50, 100}
    assert {cell.loss for cell in grid.cells if cell.burst == 1} == {0, 0.01, 0.02, 0.03, 0.05}
    assert {3, 25} <= {cell.receivers for cell in grid.cells}
    assert any(cell.burst > 1 for cell in grid.cells)
    assert (grid.updates, grid.repetitions) == (20_000, 5)


def test_relate2_row_compares_the_best_with_the_best() -> None:
    values = dict.fromkeys(TRANSPORTS, 3.0)
    lossless, lossy = Cell(3, 0.0, 1.0, 10.0), Cell(3, 0.01, 1.0, 10.0)
    better = {**values, "nak": 1.0, **dict.fromkeys(BASELINES, 2.0)}
    count, worst, loose, loose_worst, alone = requirements.relate2({lossless: values, lossy: better})
    assert (alone.value, alone.met) == (1, None)
    assert (count.value, count.target, count.met) == (1, 1, True)
    assert (worst.value, worst.met) == (0.5, True)
    # What does not order is judged by itself.
    assert (loose.value, loose.met, loose_worst.value, loose_worst.met) == (0, False, 1.5, False)
    count, worst, *_ = requirements.relate2({lossy: values})
    assert (count.value, count.met, worst.value, worst.met) == (0, False, 1.0, False)
    loose = requirements.relate2({lossy: {**values, "lateral:r=8,c=3": 1.0}})[2]
    assert ("as it comes" in loose.name, loose.value, loose.met) == (True, 1, True)


def test_what_the_paper_says_of_latencies_is_judged_and_can_be_wrong() -> None:
    def rows(**faster: float) -> dict[str, bool | None]:
        values = {**dict.fromkeys(TRANSPORTS, 3.0), "udp": 1.0, "multicast": 1.0, "tcp": 9.0}
        values |= {"lateral:r=4,c=3": 2.0, "nak": 2.5}
        values |= {name.replace("_", ":r=8,c=3"): value for name, value in faster.items()}
        cells = [Cell(3, 0.0, 1.0, 25.0), Cell(3, 0.03, 1.0, 25.0), Cell(25, 0.01, 1.0, 50.0)]
        return {row.name.partition(":")[0]: row.met for row in requirements.latencies(dict.fromkeys(cells, values))}

    assert list(rows().values()) == [True] * 4
    assert list(rows(nak=0.5).values()) == [False, True, True, False]
    assert list(rows(tcp=2.0).values())[1] is False
    assert list(rows(lateral_=2.2).values())[2] is False


def test_the_papers_figures_are_drawn(results: list[adamant_results.Result]) -> None:
    with workers() as pool:
        cells = tuple(Cell(3, loss, 1.0, rate) for loss in (0.0, 0.01) for rate in (25.0, 50.0))
        found = experiment.run_grid("adamant", Grid(cells, TRANSPORTS, 50, 2), CountedSteps(), pool)
    pictures = adamant_report.conclude(means(found, crowd=results), single(found)).pictures
    names = {picture.name.split("-")[1]: picture for picture in pictures if picture.name.startswith("figure-")}
    assert sorted(names, key=int) == ["9", "10", "16", "17", "18", "19", "20", "21"]
    assert [len(series.points) for series in names["16"].series] == [4, 4]
    assert [series.label for series in names["21"].series] == ["nak", "lateral:r=4,c=3"]


def test_statements_stand_beside_results(results: list[adamant_results.Result]) -> None:
    table = adamant_report.conclude(means(results), single(results)).tables[0]
    assert len(table.rows) == len(adamant_report.statements()) + 2
    # Figure 14: without a reward for repairs those that repair nothing come first; Figure 15: with one they do not.
    relate, relate2 = (row[4].split(" ")[0] for row in table.rows[-2:])
    assert relate in ("udp", "multicast")
    assert relate2 in ("nak", "lateral:r=4,c=3", "lateral:r=8,c=3")
    by_transport = {row[0]: row for row in table.rows}
    assert by_transport["tcp"][4] == "100.000 to 100.000"
    assert by_transport["ricochet r=4"][4].endswith(" in 2")
    # The worst of single runs, two of them as the paper names two.
    assert by_transport["rmcast"][4] == "100.000 and 100.000"


def test_pictures_go_from_the_papers_receivers_to_a_thousand(results: list[adamant_results.Result]) -> None:
    with workers() as pool:
        crowd = experiment.run_grid(
            "adamant crowd", Grid((Cell(100, 0.03, 1.0, 50.0),), ("nak",), 50, 1), CountedSteps(), pool
        )
    findings = adamant_report.conclude(means(results, crowd=crowd), single(results))
    drawn = {picture.name: picture for picture in findings.pictures}
    picture = drawn["usable_frames-by-receivers-3-percent-50-hz"]
    assert list(picture.labels) == ["3", "100"]
    assert [series.label for series in picture.series] == ["nak"]
    # Shares are drawn from a little below the least, latencies from nothing.
    assert picture.bottom == 100
    assert drawn["relate2-by-receivers-3-percent-50-hz"].bottom == 0
    titles = {table.title for table in findings.tables}
    for name in ("Usable video frames (%)", "ReLate (ms)", "ReLate2 (ms)", "Updates received (%)"):
        assert {f"{name}, simulated", f"{name}, 100 and 1,000 receivers, simulated"} <= titles


def test_results_are_values_of_the_one_schema(results: list[adamant_results.Result], tmp_path: Path) -> None:
    kept = pytest.importorskip("ringcast.record.results")
    deltalake = pytest.importorskip("deltalake")
    assert kept.keep(adamant_results.measured(results), tmp_path, machine="here") == len(results) * len(
        adamant_results.METRICS
    )
    table = deltalake.DeltaTable(tmp_path / "bronze.results").to_pyarrow_table()
    assert table.column_names[:8] == [
        "experiment", "configuration", "repetition", "metric", "value", "unit", "machine", "version",
    ]  # fmt: skip
    first = table.slice(0, 1).to_pylist()[0]
    configuration = json.loads(first["configuration"])
    assert configuration["transport"] == "tcp"
    assert all(isinstance(value, int | float) for name, value in configuration.items() if name != "transport")
    assert (first["metric"], first["value"], first["unit"], first["machine"]) == ("delivered", 100.0, "%", "here")


def test_a_folder_with_report_rows_and_pictures(results: list[adamant_results.Result], tmp_path: Path) -> None:
    findings = experiment.AdamantFindings()
    findings.simulated = True
    experiment.conclude(findings, Told(results))
    names = {path.name for path in files.write(findings, tmp_path / "out", "ringcast lab run adamant --quick")}
    assert {"report.md", "rows.json"} <= names
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.startswith("# ringcast lab run adamant --quick\n")
    assert "Beside the paper's statements" in report
    assert "ReLate2, in order" in report
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="--out"):
        files.write(findings, tmp_path / "file", "ringcast lab run adamant")


def test_the_experiment_is_in_the_table_and_needs_no_root() -> None:
    parser = argparse.ArgumentParser()
    lab_run.configure(parser)
    assert not lab_run.needs_network(parser.parse_args(["adamant", "--quick"]))


def test_drawn_environments_are_the_same_ones_and_no_line_is_full() -> None:
    many = adamant_environments.environments(60)
    assert adamant_environments.environments(20) == many[:20]
    assert adamant_environments.environments(20, seed=5) != many[:20]
    assert len(set(many)) == 60
    loads = [cell.receivers * cell.payload_bytes * 8e-6 * cell.rate_hz / cell.bandwidth_mbit for cell in many]
    assert 0.2 < max(loads) <= adamant_environments.LOAD[1]
    assert min(cell.delay_us for cell in many) < 200
    assert max(cell.delay_us for cell in many) > 10_000


def test_runs_are_longer_where_little_is_lost() -> None:
    grid = Grid((), (), 1_000, 1, losses=300)
    assert grid.length(Cell(25, 0.1, 1.0, 50.0)) == 1_000
    assert grid.length(Cell(10, 0.01, 1.0, 50.0)) == 3_000
    assert grid.length(Cell(10, 0.01, 2.0, 50.0)) == 6_000
    assert grid.length(Cell(2, 0.002, 1.0, 50.0)) == 6_000
    assert grid.length(Cell(10, 0.0, 1.0, 50.0)) == 1_000
    assert Grid((), (), 1_000, 1).length(Cell(2, 0.002, 1.0, 50.0)) == 1_000


def test_winners_are_counted() -> None:
    grid = [
        {"experiment": "e", "metric": metric, "receivers": place, "loss_percent": 1.0, "burst": 1.0, "rate_hz": 10.0,
         "transport": name, "mean": 1.0, "place": 1 + (name == "b")}
        for metric in adamant_report.COMPARED for place in (1, 2, 3) for name in ("a", "b")
    ]  # fmt: skip
    table = adamant_report.winners(Means(grid, ["a", "b"]), "e", ["a", "b"])
    assert table.title == "Best of 2 in how many of 3 drawn environments"
    assert table.rows == [["a", "3", "3", "3", "3", "3"], ["b", "0", "0", "0", "0", "0"]]


def test_everything_that_is_drawn_is_in_the_results() -> None:
    cell = adamant_environments.environments(1)[0]
    with workers() as pool:
        (result,) = experiment.run_grid("e", Grid((cell,), ("nak",), 50, 1), CountedSteps(), pool)
    c = result.configuration
    assert [float(c[name]) for name in ("receivers", "rate_hz", "payload_bytes", "delay_us", "bandwidth_mbit")] == [
        cell.receivers, cell.rate_hz, cell.payload_bytes, cell.delay_us, cell.bandwidth_mbit,
    ]  # fmt: skip
    net, plain = result.metrics["relate2_net"], result.metrics["relate2"]
    assert net == pytest.approx(plain * result.metrics["wire_bytes_per_update"] * cell.rate_hz / 1e3)


def test_a_part_is_run_alone_and_what_was_run_is_forgotten_when_it_is_in_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Grid(adamant_environments.environments(2, seed=9), ("udp", "nak"), 60, 4)
    monkeypatch.setattr(experiment, "judged_grid", lambda quick, seed, number=0: small)
    out, lake = tmp_path / "out", tmp_path / "lake"
    parser = argparse.ArgumentParser()
    lab_run.configure(parser)
    where = ["--out", str(out), "--lake", str(lake), "--json"]
    assert lab_run.run(parser.parse_args(["adamant", "--part", "unseen", *where])) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert not list(out.glob("runs-so-far"))
    assert list((lake / "bronze.results" / "data").glob("*.parquet"))
    assert not (lake / "gold.grid").exists(), "nothing is made of it before somebody learns from it"


@pytest.mark.parametrize(("name", "says"), [("adamant", "its parts are field"), ("placement", "it has no parts")])
def test_a_part_that_is_not_there_is_refused(name: str, says: str) -> None:
    parser = argparse.ArgumentParser()
    lab_run.configure(parser)
    with pytest.raises(Misuse, match=says):
        lab_run.run(parser.parse_args([name, "--part", "nonsense"]))
