"""`ringcast lab compare`: two reports side by side, as a command."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ringcast.cli.program import main
from ringcast.lab.measuring.rows import Row
from ringcast.lab.report.gathering import ROWS, STATE, Run

ROW = Row("round trip", 10.0, "us", None, 12.0, True)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """The verb has a handler of its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def report(folder: Path, row: Row) -> str:
    place = folder / "push-pull"
    place.mkdir(parents=True)
    run = Run("push-pull", "ringcast lab run push-pull", False, 1.0, "1.0", "a machine")
    (place / STATE).write_bytes(msgspec.json.encode(run))
    (place / ROWS).write_bytes(msgspec.json.encode([row.document()]))
    return str(folder)


def test_what_changed_is_told_with_its_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = report(tmp_path / "a", ROW)
    after = report(tmp_path / "b", msgspec.structs.replace(ROW, value=20.0, met=False))
    assert main(["lab", "compare", before, after]) == 0
    said = capsys.readouterr().out
    assert "round trip" in said
    assert "no longer met" in said
    assert main(["lab", "compare", before, after, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"experiment": "push-pull", "what": "round trip", "before": "10", "after": "20", "unit": "us",
         "after / before": "2.00", "verdict": "no longer met"},
    ]  # fmt: skip


def test_equal_reports_are_said_to_be_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = report(tmp_path / "a", ROW)
    assert main(["lab", "compare", folder, folder]) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert main(["lab", "compare", folder, folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_folder_without_a_report_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "compare", report(tmp_path / "a", ROW), str(tmp_path / "nothing")]) == 1
    assert "nothing holds no report; 'ringcast lab run all --out" in capsys.readouterr().err
