"""Rows of ask and answer: as the benchmark prints them, and when there is nothing to print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lab_fakes import CountedSteps

from ringcast.lab.labmap import peers_asked
from ringcast.lab.testbed import peers

ASKED = "ask and answer p50, one node, one core: 3 times faster than the fastest peer (pyzmq ipc)"


def printed(monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    monkeypatch.setattr(peers, "place", lambda: Path("bench"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, text, ""))
    return peers_asked.run(True, CountedSteps())


def test_judged_rows_are_asked_and_others_are_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"name": ASKED, "value": 9.0, "unit": "us", "reference": 30.0, "target": 10.0, "met": True},
        {"name": "ask and answer, one node, one core, p50: zenoh", "value": 90.0, "unit": "us"},
        {"name": "ask and answer, one node, one core, p99: zenoh", "value": 900.0, "unit": "us"},
    ]
    found = printed(monkeypatch, json.dumps(lines))
    assert [(row.kind, row.met) for row in found.rows] == [("asked", True), ("figure", None)]


def test_without_a_peer_nothing_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    found = printed(monkeypatch, json.dumps([{"name": ASKED, "value": 9.0, "unit": "us"}]))
    assert [(row.kind, row.met) for row in found.rows] == [("asked", False)]
    nothing = printed(monkeypatch, "no rows")
    assert [row.met for row in nothing.rows] == [False, False]
    assert "bench/ask.py" in nothing.notes[0]
    monkeypatch.setattr(peers, "place", lambda: None)
    assert "setup_peers" in peers_asked.run(True, CountedSteps()).notes[0]
