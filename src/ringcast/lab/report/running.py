"""Runs every experiment in a process of its own, one after the other: one that fails stops no other.

Invariant: an experiment whose state says that it ended well, in the same form and by the same version, is not run
again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ringcast.lab.report.gathering import STATE, Run

QUICK_S, FULL_S = 600.0, 7200.0
"""An experiment that takes longer has failed."""
END_S = 30.0
_LAST_LINES = 3
STEP = "ringcast step: "
"""How a line begins by which an experiment says what it does next (`--together`)."""
STEPS = "steps.tsv"
"""When each step began, in seconds: where the time went."""


def run_all(
    experiments: Sequence[str], folder: Path, lake: Path, *, quick: bool, again: bool, version: str, machine: str,
    say: Callable[[str], None], progress: Callable[[str], None] = lambda text: None,
) -> None:  # fmt: skip
    """Leaves a folder for each in `folder`. `progress` is told which step is under way. Raises OSError,
    KeyboardInterrupt."""
    for number, name in enumerate(experiments, 1):
        place, head = folder / name, f"{number} of {len(experiments)}: {name}"
        if not again and _done(place, quick, version):
            say(f"{head} is there already")
            continue
        say(head)
        place.mkdir(parents=True, exist_ok=True)
        run = _run(
            name, place, lake, quick=quick, version=version, machine=machine,
            progress=lambda step, head=head: progress(f"{head}, {step}"),  # type: ignore[misc]
        )  # fmt: skip
        (place / STATE).write_bytes(msgspec.json.encode(run))
        say(f"   failed after {run.seconds:.0f} s: {run.problem}" if run.problem else f"   {run.seconds:.0f} s")


def _done(place: Path, quick: bool, version: str) -> bool:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        known = msgspec.json.decode((place / STATE).read_bytes(), type=Run)
        return not known.problem and known.quick == quick and known.version == version
    return False


def _run(
    name: str, place: Path, lake: Path, *, quick: bool, version: str, machine: str, progress: Callable[[str], None]
) -> Run:
    words = ["lab", "run", name, *(["--quick"] if quick else []), "--json"]
    command = [sys.executable, "-m", "ringcast", *words, "--out", str(place), "--lake", str(lake), "--together"]
    began = time.monotonic()
    most_s = QUICK_S if quick else FULL_S
    with (
        (place / STEPS).open("w", buffering=1) as log,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process,
    ):
        timers = threading.Timer(most_s, process.terminate), threading.Timer(most_s + END_S, process.kill)
        for timer in timers:
            timer.start()
        try:
            lines = _listen(process, lambda step: log.write(f"{time.monotonic() - began:.1f}\t{step}\n"), progress)
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
        except BaseException:
            _end(process)
            raise
        finally:
            for timer in timers:
                timer.cancel()
    seconds = time.monotonic() - began
    problem = ""
    if seconds >= most_s:
        problem = f"it took longer than {most_s:.0f} s"
    elif process.returncode:
        problem = " / ".join(lines) or f"it ended with {process.returncode}"
    return Run(name, f"ringcast {' '.join(words)}", quick, seconds, version, machine, problem)


def _listen(
    process: subprocess.Popen[str], keep: Callable[[str], object], progress: Callable[[str], None]
) -> deque[str]:
    """Until it ends. Steps are told; of the rest, the last lines are returned."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(STEP):
            step = line.removeprefix(STEP).strip()
            keep(step)
            progress(step)
        elif line.strip():
            last.append(line.strip())
    return last


def _end(process: subprocess.Popen[str]) -> None:
    """It removes what it built. Not by SIGINT, which is ignored by all that a script started in the background."""
    process.terminate()
    try:
        process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
