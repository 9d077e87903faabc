"""What the machine itself costs: programs that do nothing but wake each other, and the ring without Python; those in C
and C++ are compiled on demand.

Each of the former pins itself and its child, plays ping-pong, and prints one round trip per line in nanoseconds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from harness.process import BENCH
from harness.run import Run
from ringcast.lab.testbed.node import Node

FLOORS = ("C UDP ping-pong", "C futex ping-pong", "two asyncio loops and two eventfds")
BUILD = BENCH.parent / "build" / "bench"
TIMEOUT_S = 60.0
TCP_PORT = "7777"
LINE = "cache line, core to core and back"
_LINES = 64  # of one round trip of the program
_SOURCES = dict(
    zip(
        (*FLOORS, LINE),
        ("udp_ping_pong.c", "futex_ping_pong.c", "asyncio_eventfds.py", "line_ping_pong.c"),
        strict=True,
    )
)
NATIVE = BENCH.parent / "native"
_RING = (BENCH / "floor" / "ring_stream.cpp", *sorted(NATIVE.glob("ring/*.cpp")), *sorted(NATIVE.glob("system/*.cpp")))


def _compile(source: Path, *others: Path) -> Path:
    """The program made from `source` and `others`, built when missing or older.

    Raises:
        OSError: there is no compiler, or it refused.
    """
    program = BUILD / source.stem
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in (source, *others)):
        return program
    variable, usual, *options = ("CC", "cc", "-O2") if source.suffix == ".c" else ("CXX", "c++", "-O3", "-std=c++20")
    compiler = os.environ.get(variable) or shutil.which(usual)
    if compiler is None:
        raise OSError(f"no compiler ({usual})")
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [compiler, *options, "-Wall", "-pthread", "-I", NATIVE, "-o", program, source, *others]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise OSError(f"the compiler refused {source.name}: {made.stderr[:200]}")
    return program


def prepare_ring(run: Run) -> Path | None:
    """The program that streams through a ring without Python; nothing, with a note, where there is no compiler."""
    try:
        return _compile(*_RING)
    except OSError as exc:
        run.notes.append(f"the ring without Python was not measured: {exc}")
        return None


def ring_stream(program: Path, here: int, there: int, size: int, batch: int, count: int) -> float:
    """Messages a second through a ring, without Python. Raises OSError, subprocess.SubprocessError."""
    words = [program, *map(str, (here, there, size, batch, count))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return float(done.stdout.split()[0])


def tcp_stream(here: Node, there: Node, cores: tuple[int, int], size: int) -> float:
    """Bytes a second of a bare tcp stream in C between two nodes. Raises OSError, subprocess.SubprocessError."""
    program = str(_compile(BENCH / "floor" / "tcp_stream.c"))
    place = [there.address(), TCP_PORT, str(size)]
    with there.spawn([program, "receive", str(cores[1]), *place]) as receiver:
        try:
            if receiver.stdout is None or receiver.stdout.readline() != "ready\n":
                raise OSError("the receiver of a bare stream did not begin")
            here.run([program, "send", str(cores[0]), *place], timeout=TIMEOUT_S)
            return float(receiver.communicate(timeout=TIMEOUT_S)[0])
        finally:
            receiver.kill()


def line_ns(run: Run, here: int, there: int) -> float | None:
    """What a cache line takes from core to core and back now: a hypervisor may move the cores at any time."""
    taken = ping_pong(run, LINE, here, there, 300)
    return statistics.median(taken) / _LINES if taken else None


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
