"""`ringcast lab run all`: what experiments left becomes one page, and a failed one is told."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringcast.cli.parts.labs import everything
from ringcast.lab.report.gathering import FIGURES, ROWS, STATE, Figures, Run
from ringcast.record.machine import code_version


@pytest.mark.parametrize(("problem", "code"), [("", 0), ("it burned", 1)])
def test_one_page_of_what_was_run(
    problem: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def run_all(experiments: list[str], folder: Path, lake: Path, **how: Any) -> None:
        asked.append({"experiments": experiments, **how})
        place = folder / "placement"
        place.mkdir(parents=True)
        run = Run(
            "placement", "ringcast lab run placement --quick", True, 12.0, how["version"], how["machine"], problem
        )
        (place / STATE).write_bytes(msgspec.json.encode(run))
        if not problem:
            (place / ROWS).write_bytes(b"[]")
            (place / FIGURES).write_bytes(msgspec.json.encode(Figures([], [])))

    monkeypatch.setattr(everything, "run_all", run_all)
    monkeypatch.setattr(everything.concluding, "conclude", lambda *_: ([], []))
    args = argparse.Namespace(json=False, out=tmp_path / "report", quick=True, again=False)
    assert everything.run(args, {"placement": "ringcast.lab.placement.experiment"}, tmp_path / "lake") == code
    assert (asked[0]["version"], asked[0]["quick"]) == (code_version(), True)
    assert "placement" in (tmp_path / "report" / "index.html").read_text()
    told = capsys.readouterr().out
    assert "placement" in told
    assert problem in told
