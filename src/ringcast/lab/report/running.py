"""Runs every experiment in a process of its own, one after the other: one that fails stops no other.

Invariant: an experiment whose state says that it ended well, in the same form and by the same version, is not run
again.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ringcast.lab.report.gathering import STATE, Run

QUICK_S, FULL_S = 300.0, 7200.0
"""An experiment that takes longer has failed."""
END_S = 30.0
_LAST_LINES = 3


def run_all(
    experiments: Sequence[str], folder: Path, lake: Path, *, quick: bool, again: bool, version: str, machine: str,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Leaves a folder for each in `folder`. Raises OSError, KeyboardInterrupt."""
    for number, name in enumerate(experiments, 1):
        place = folder / name
        if not again and _done(place, quick, version):
            say(f"{number} of {len(experiments)}: {name} is there already")
            continue
        say(f"{number} of {len(experiments)}: {name}")
        place.mkdir(parents=True, exist_ok=True)
        run = _run(name, place, lake, quick=quick, version=version, machine=machine)
        (place / STATE).write_bytes(msgspec.json.encode(run))
        say(f"   failed after {run.seconds:.0f} s: {run.problem}" if run.problem else f"   {run.seconds:.0f} s")


def _done(place: Path, quick: bool, version: str) -> bool:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode((place / STATE).read_bytes(), type=Run)
        return not known.problem and known.quick == quick and known.version == version
    return False


def _run(name: str, place: Path, lake: Path, *, quick: bool, version: str, machine: str) -> Run:
    words = ["lab", "run", name, *(["--quick"] if quick else []), "--json"]
    command = [sys.executable, "-m", "ringcast", *words, "--out", str(place), "--lake", str(lake)]
    began = time.monotonic()
    problem = ""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, told = process.communicate(timeout=QUICK_S if quick else FULL_S)
            if process.returncode:
                lines = [line for line in told.splitlines() if line.strip()][-_LAST_LINES:]
                problem = " / ".join(lines) or f"it ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            problem = f"it took longer than {QUICK_S if quick else FULL_S:.0f} s"
            _end(process)
        except BaseException:
            _end(process)
            raise
    seconds = time.monotonic() - began
    return Run(name, f"ringcast {' '.join(words)}", quick, seconds, version, machine, problem)


def _end(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C: it removes what it built."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
