"""How long it takes to join a closed mesh: from typing `ringcast secure join INVITATION` to the certificate."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ringcast.lab.measuring.report import Analysed
from ringcast.lab.measuring.rows import Row, at_most
from ringcast.lab.security.cells import Joined, told, values
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.figures import Measured

MOST_S = 5.0
_RINGCAST = (sys.executable, "-m", "ringcast", "secure")


def measured(quick: bool) -> list[Measured]:
    """Raises LabError."""
    return list(values(Joined("invitation"), "joining", [[taken] for taken in durations_s(3 if quick else 9)], "s"))


def judged(analysed: Analysed) -> list[Row]:
    return [
        row
        for taken in told(analysed, "joining", Joined).values()
        for row in (
            at_most("a node joins with an invitation, the slowest of several", taken["most"], "s", MOST_S),
            at_most("a node joins with an invitation, median", taken["p50"], "s", MOST_S),
        )
    ]


def durations_s(times: int) -> list[float]:
    """Of so many nodes, each invited and joined by commands alone; no file is edited. Raises LabError."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _do("init", "--name", "base", "--identity", str(folder / "base"))
        return [_join(folder, f"node{number}") for number in range(times)]


def _join(folder: Path, name: str) -> float:
    invite = [*_RINGCAST, "invite", "--host", "127.0.0.1", "--port", "0", "--identity", str(folder / "base"), "--json"]
    with subprocess.Popen(invite, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        try:
            invitation = json.loads(host.stdout.readline())["invitation"]
            begin = time.monotonic()
            _do("join", invitation, "--name", name, "--identity", str(folder / name))
            taken = time.monotonic() - begin
        except BaseException:
            host.kill()
            raise
    if not (folder / name / "node.pem").exists():
        raise LabError(f"{name} joined and has no certificate")
    return taken


def _do(*words: str) -> None:
    done = subprocess.run([*_RINGCAST, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise LabError(f"ringcast secure {words[0]}: {done.stderr.strip()}")
