"""`ringcast pipeline`, from made-up messages to a page."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyspark.sql import SparkSession

from ringcast.cli import main


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command's session is the tests' one, and its lake a new one."""
    module = types.ModuleType("ringcast.spark.session")
    module.open_session = lambda *args, **settings: spark  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ringcast.spark.session", module)
    monkeypatch.setenv("RINGCAST_LAKE", str(tmp_path / "lake"))
    return tmp_path / "lake"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> object:
    assert main(["pipeline", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_from_messages_to_a_page(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = said(capsys, "simulate", "--seconds", "1")
    assert made["bronze.messages"] == 240  # type: ignore[index]
    span = ("--from", "2026-01-01T12:00", "--to", "2026-01-01T12:30")
    for name, table in (("refine", "silver.video"), ("fuse", "gold.detections"),
                        ("qos", "gold.qos")):  # fmt: skip
        outputs = said(capsys, "run", name, *span)["outputs"]  # type: ignore[index, call-overload]
        assert outputs[table] > 5
    rows = {row["table"]: row for row in said(capsys, "tables")}  # type: ignore[attr-defined]
    assert rows["silver.infrared"]["rows"] == 20
    assert rows["runs"]["rows"] == 4
    assert main(["pipeline", "lineage", "gold.detections"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("gold.detections <- silver.gps <- silver.infrared <- silver.pose <- silver.video <- bronze")
    assert "fuse-" in told
    compacted = said(capsys, "compact", "runs")
    assert compacted == [{"table": "runs", "rewritten": 4, "into": 1}]
    page = tmp_path / "out" / "page.html"
    assert main(["pipeline", "report", "--out", str(page)]) == 0
    text = page.read_text()
    assert "recall 1.000, precision 1.000" in text
    assert "data:image/png;base64," in text
    pictures = sorted(path.name for path in page.parent.glob("*.svg"))
    assert pictures == ["page-quality-of-service.svg", "page-survivors.svg"]
    for name in pictures:
        ElementTree.parse(page.parent / name)


def test_mistakes_are_said_in_a_sentence(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, sentence in (
        (["run", "brew"], 2, "there is no pipeline 'brew'; there are ingest, refine"),
        (["run", "qos", "--from", "2026-01-01"], 2, "give both --from and --to"),
        (["run", "qos", "--from", "noon"], 2, "'noon' is not a time"),
        (["lineage", "gold.dust"], 1, "there is no table 'gold.dust'; there are bronze.messages"),
        (["run", "ingest"], 1, "--input DIR"),
    ):
        assert main(["pipeline", *words]) == code
        assert sentence in capsys.readouterr().err
