"""The price of waking alone: programs that do nothing but wake each other; those in C are compiled on demand.

Each program pins itself and its child, plays ping-pong, and prints one round trip per line in nanoseconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.process import BENCH
from harness.run import Run

FLOORS = ("C UDP ping-pong", "C futex ping-pong", "two asyncio loops and two eventfds")
_SOURCES = dict(zip(FLOORS, ("udp_ping_pong.c", "futex_ping_pong.c", "asyncio_eventfds.py"), strict=True))
BUILD = BENCH.parent / "build" / "bench"
TIMEOUT_S = 60.0


def _compile(source: Path) -> Path:
    """The program made from `source`, built when missing or older.

    Raises:
        OSError: there is no C compiler, or it refused.
    """
    program = BUILD / source.stem
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        raise OSError("no C compiler (cc)")
    BUILD.mkdir(parents=True, exist_ok=True)
    made = subprocess.run([compiler, "-O2", "-Wall", "-o", program, source], capture_output=True, text=True)
    if made.returncode != 0:
        raise OSError(f"the C compiler refused {source.name}: {made.stderr[:200]}")
    return program


def ping_pong(run: Run, floor: str, here: int, there: int, count: int) -> list[int]:
    """Nanoseconds of `count` round trips between two cores; empty, with a note, where it cannot run."""
    run.expect(floor, 1)
    run.advance(floor)
    try:
        source = BENCH / "floor" / _SOURCES[floor]
        program = [sys.executable, source] if source.suffix == ".py" else [_compile(source)]
        done = subprocess.run(
            [*program, str(here), str(there), str(count)], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as exc:
        run.notes.append(f"{floor} failed: {exc}")
        return []
    return [int(line) for line in done.stdout.split()]
