"""Experiments that ran together are concluded at the end, on one session: a failed one stops no other."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringcast.cli.parts.labs import concluding
from ringcast.lab.measuring.report import Findings
from ringcast.lab.measuring.rows import figure
from ringcast.lab.report.gathering import STATE, Run, ran
from ringcast.record.figures import Measured


class Analysis:
    """One session; knows which pipelines were run on it."""

    started = 0

    def __init__(self, lake: Path) -> None:
        type(self).started += 1
        self.ran: list[str] = []

    def __enter__(self) -> Analysis:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def run(self, pipelines: Sequence[str], say: Callable[[str], None] = print) -> None:
        self.ran += pipelines

    def summary(self) -> list[dict[str, Any]]:
        return [{"experiment": "all", "pipelines": list(self.ran)}]

    def latest(self) -> list[dict[str, Any]]:
        return []


def experiment(name: str, conclude: Callable[[Findings, Any], None]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.PIPELINES = ("fit", name)  # type: ignore[attr-defined]
    module.conclude = conclude  # type: ignore[attr-defined]
    return module


def broken(findings: Findings, analysed: Any) -> None:
    raise KeyError("nobody measured it")


def judged(findings: Findings, analysed: Any) -> None:
    findings.rows.append(figure("made by Spark", 2.0, "ms"))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    Analysis.started = 0
    analysing = types.SimpleNamespace(analysis=Analysis)
    monkeypatch.setitem(sys.modules, "ringcast.spark.experiments.analysing", analysing)
    known = {"bad": experiment("bad", broken), "good": experiment("good", judged)}
    for name, module in known.items():
        monkeypatch.setitem(sys.modules, f"lab_of_{name}", module)
    return {name: f"lab_of_{name}" for name in known}


def leave(folder: Path, modules: dict[str, str]) -> None:
    for name, module in modules.items():
        place = folder / name
        place.mkdir(parents=True)
        run = Run(name, f"ringcast lab run {name} --quick --json", True, 1.0, "1.0", "a machine")
        (place / STATE).write_bytes(msgspec.json.encode(run))
        found = Findings(
            rows=[figure("measured", 1.0, "ms")], measured=[Measured(name, {"size": 1}, 0, "round_trip", 1.0, "ns")]
        )
        concluding.leave(sys.modules[module], found, place, run.command)


def test_all_that_was_left_is_concluded_on_one_session(tmp_path: Path, modules: dict[str, str]) -> None:
    leave(tmp_path / "report", modules)
    assert [row.name for row in ran(tmp_path / "report")["good"].rows] == ["measured"], "a report before Spark"
    told: list[str] = []
    summary, _ = concluding.conclude(modules, tmp_path / "report", tmp_path / "lake", told.append, told.append)
    assert Analysis.started == 1
    assert summary[0]["pipelines"] == ["fit", "bad", "good", "history"], "each pipeline once"
    everything = ran(tmp_path / "report")
    assert [row.name for row in everything["good"].rows] == ["measured", "made by Spark"]
    assert "nobody measured it" in everything["bad"].run.problem
    assert any("nobody measured it" in line for line in told)
    assert everything["good"].run.problem == ""


def test_what_was_concluded_is_not_concluded_again(tmp_path: Path, modules: dict[str, str]) -> None:
    leave(tmp_path / "report", modules)
    for _ in range(2):
        summary, _ = concluding.conclude(modules, tmp_path / "report", tmp_path / "lake", print, print)
    assert summary[0]["pipelines"] == ["history"]


def test_without_spark_there_is_a_report_of_what_was_measured(
    tmp_path: Path, modules: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path / "report", modules)
    monkeypatch.setitem(sys.modules, "ringcast.spark.experiments.analysing", None)
    told: list[str] = []
    assert concluding.conclude(modules, tmp_path / "report", tmp_path / "lake", told.append, print) == ([], [])
    assert "pip install 'ringcast[spark]'" in told[0]
    assert [row.name for row in ran(tmp_path / "report")["good"].rows] == ["measured"]
