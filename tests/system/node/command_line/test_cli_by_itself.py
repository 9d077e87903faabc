"""The verbs that need nobody: doctor and demo. They leave the machine as they found it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringcast.demo.small.roles import PUBLISHERS, STARTER, SUBSCRIBERS

PATIENCE_S = 120.0
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start `ringcast VERB ...` whose temporary files go to a directory of their own."""

    def begin(*arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "RINGCAST_SOCKET": str(tmp_path / "d.sock")}
        return subprocess.Popen(
            [sys.executable, "-m", "ringcast", *arguments], env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip

    return begin


def processes_below(directory: Path) -> list[str]:
    """Command lines that name a file in `directory`."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(directory) in command:
                found.append(command)
    return found


def test_doctor_looks_at_everything_and_starts_nothing(start: Start, tmp_path: Path) -> None:
    process = start("doctor", "--json")
    out, errors = process.communicate(timeout=PATIENCE_S)
    told = json.loads(out)
    assert errors == ""
    assert process.returncode == (0 if told["healthy"] else 1)
    names = {finding["name"] for finding in told["findings"]}
    assert {"kernel", "futex_waitv", "memfd seals", "pidfd", "cores", "clock source", "open files"} <= names
    assert {"locked memory", "SCHED_FIFO", "SCHED_DEADLINE", "vm.max_map_count", "memory", "daemon"} <= names
    assert {"socket directory", "python", "numpy", "msgspec", "native core"} <= names
    assert all(finding["state"] == "ok" or finding["remedy"] for finding in told["findings"])
    assert list(tmp_path.iterdir()) == []


def test_doctor_finds_a_daemon_that_runs(start: Start, daemon: Any) -> None:
    process = start("doctor", "--json", "--socket", daemon.socket_path)
    findings = {
        finding["name"]: finding for finding in json.loads(process.communicate(timeout=PATIENCE_S)[0])["findings"]
    }
    assert f"process {daemon.process.pid}," in findings["daemon"]["value"]


def test_doctor_fails_when_what_is_needed_is_missing(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = start("doctor", "--socket", str(tmp_path / "file" / "d.sock"))
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert out.splitlines()[-1] == "Ringcast does not run here without: socket directory."


def test_the_demo_shows_everybody_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process = start("demo", "--small", "--seconds", "1", "--json")
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    told = json.loads(out)
    sent = {name: seen["sent"] for name, seen in told["scene"]["publishers"].items()}
    assert sent.keys() == {role.name for role in (*PUBLISHERS, STARTER)}
    received = told["scene"]["subscribers"]
    assert received.keys() == {role.name for role in SUBSCRIBERS}
    assert all(seen["received"] > 0 for seen in received.values())
    for name, tags in (("eager", ["sensor"]), ("everything", ["sensor", "camera", "thermometer"])):
        assert received[name]["received"] + received[name]["lost"] == sum(sent[tag] for tag in tags)
    assert len(told["pulls"]) == 5
    assert "ready" in told["pulls"][-1]["found"]
    assert told["idle_exit_s"] is not None
    assert list(tmp_path.iterdir()) == []
    assert processes_below(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_leaves_nothing(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    process = start("demo", "--small", "--seconds", "60")
    assert process.stdout is not None
    assert "process" in process.stdout.readline()
    assert "starting" in process.stdout.readline()
    assert "sending" in process.stdout.readline()
    assert len(processes_below(tmp_path)) > len(SUBSCRIBERS)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (130, "")
    assert list(tmp_path.iterdir()) == []
    assert processes_below(tmp_path) == []
