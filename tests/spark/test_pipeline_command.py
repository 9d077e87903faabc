"""`ringcast pipeline`, from made-up messages to a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringcast.cli import main


@pytest.fixture
def lake(command_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    assert told.startswith("gold.detections <- bronze.messages <- clocks <- sensors")
    assert "fuse-" in told
    query = "select tag, count(*) as n from bronze.messages where tag <> 'bronze.messages' group by tag order by tag"
    counted = said(capsys, "sql", query)
    assert sum(row["n"] for row in counted) == 240  # type: ignore[attr-defined]
    about: Any = said(capsys, "tables", "--describe", "gold.detections")
    assert about["pipelines"] == {"fuse": "ringcast.rescue.pipelines.fuse"}
    assert about["columns"]["x"] == "double not null"
    assert about["made_from"] == ["bronze.messages", "clocks", "sensors"]
    counted = {row["what"]: row["rows"] for row in about["quality"]}
    assert counted["frames"] == 20
    assert [run["state"] for run in about["runs"]] == ["done"]
    known: Any = said(capsys, "list")
    assert {row["pipeline"]: row["options"] for row in known}["qos"] == {"window_s": "1.0", "deadline_ns": "50000000"}
    compacted = said(capsys, "compact", "runs")
    assert compacted == [{"table": "runs", "rewritten": 4, "into": 1}]
    page = tmp_path / "out" / "page.html"
    assert main(["pipeline", "report", "--out", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text()
    assert "recall 1.000, precision 1.000" in text
    assert "data:image/png;base64," in text
    assert '<b id="waiting">6</b> wait for a team' in text
    assert [path.name for path in page.parent.iterdir()] == ["page.html"], "it needs nothing beside it"
    sent = said(capsys, "run", "dispatch")["outputs"]  # type: ignore[index, call-overload]
    assert sent == {"gold.dispatch": 6}


def test_mistakes_are_said_in_a_sentence(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, sentence in (
        (
            ["run", "brew"],
            2,
            "there is no pipeline 'brew'; there are cells, components, contrasts, dispatch, fire, fit",
        ),
        (["run", "qos", "--from", "2026-01-01"], 2, "give both --from and --to"),
        (["run", "qos", "--from", "noon"], 2, "'noon' is not a time"),
        (["lineage", "gold.dust"], 1, "there is no table 'gold.dust'; there are bronze.messages"),
        (["run", "ingest"], 1, "--input DIR"),
        (["run", "qos", "--set", "windows=3"], 1, "qos has no option 'windows'; it has window_s, deadline_ns"),
        (["run", "qos", "--set", "window_s=long"], 2, "window_s is 'long', not float"),
        (["run", "train", "--stream"], 1, "train runs over what is there, not live"),
        (["sql", "select nothing from nowhere"], 2, "nowhere"),
        (["new", "Room-Heat"], 1, "small letters"),
    ):
        assert main(["pipeline", *words]) == code
        assert sentence in capsys.readouterr().err
