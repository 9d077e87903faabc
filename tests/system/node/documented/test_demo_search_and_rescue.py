"""The demo finds who is to be found, leaves a page, and nothing else: not when it ends, not when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from spark_programs import quick

pytest.importorskip("pyspark")

PATIENCE_S = 240.0
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start `ringcast demo ...`, whose temporary files go to `tmp` and whose folder is `out`."""
    (tmp_path / "tmp").mkdir()

    def begin(*arguments: str) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            **quick(),
            "TMPDIR": str(tmp_path / "tmp"),
            "RINGCAST_SOCKET": str(tmp_path / "d.sock"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "ringcast", "demo", "--out", "out", *arguments], env=environment, cwd=tmp_path,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return begin


def left_behind(directory: Path) -> list[str]:
    """Files beside the folder, and processes that were started in `directory` or name a file in it."""
    found = [str(path) for path in directory.iterdir() if path.name not in ("out", "tmp")]
    found += map(str, (directory / "tmp").iterdir())
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            at = os.readlink(place / "cwd")
        except OSError:
            continue
        if str(directory) in command or at.startswith(str(directory)):
            found.append(command)
    return found


def test_survivors_are_found_and_a_page_is_left(start: Start, tmp_path: Path) -> None:
    process = start("--seconds", "2", "--json")
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    told = json.loads(out)
    found = told["concluded"]
    assert found["survivors_found"] == found["survivors"] == 6
    assert found["ticks"] >= 20
    assert found["recall"] >= 0.9
    assert found["precision"] >= 0.9
    assert told["scene"]["detections"] == found["written"], "what came back on the tag is what the table has"
    assert 60 < found["detections"] <= found["written"]
    streams = told["scene"]["streams"]
    assert {kind: one["publishers"] for kind, one in streams.items()} == {"ir": 2, "pose": 2, "gps": 2, "video": 4}
    weak = told["scene"]["handheld"]
    assert weak["shape"] == [36, 48]
    assert 0 < weak["received"] < streams["ir"]["received"] / 2
    carried = {(row["at"], row["node"]) for row in found["channels"]}
    assert {("base", "sky"), ("base", "street"), ("street", "sky")} <= carried
    assert any(row["width"] == 48 and row["at"] == "base" for row in found["channels"])
    page = (tmp_path / "out" / "index.html").read_text()
    for words in (
        "Plotly.newPlot",
        "wait for a team",
        "data:image/png",
        "Survivors",
        "Quality of service",
        "Channels",
        "The weak subscriber",
    ):
        assert words in page
    assert json.loads((tmp_path / "out" / "demo.json").read_text()) == told
    assert left_behind(tmp_path) == []


def test_interrupted_it_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process = start("--seconds", "600")
    assert process.stdout is not None
    while "the search begins" not in process.stdout.readline():
        assert process.poll() is None
    assert "messages/s" in process.stdout.readline()
    assert len(left_behind(tmp_path)) > 8
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert left_behind(tmp_path) == []
