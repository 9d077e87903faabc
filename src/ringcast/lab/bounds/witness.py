"""Witnesses: a process on each core, above everything else, that only sleeps and notes when it was woken late. Nobody
is above it but the hypervisor, so the core was taken away meanwhile.

`python -m ringcast.lab.bounds.witness CORE` writes each such time as a line, from and to in nanoseconds. What is taken
away and given back between two of its wakings it does not see: it wakes often. Invariant: no witness outlives the
`with` block.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Self

from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError

FIFO = 90
EVERY_NS, LATE_NS = 500_000, 200_000
Taken = tuple[int, int]
_PR_SET_PDEATHSIG = 1
_WAKES = 400
_SLOWEST = 0.99


class Witnesses:
    """Of all cores. Entering raises LabError where this user may not give real-time priorities."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.processes: list[subprocess.Popen[bytes]] = []
        self._unfinished: dict[int, bytes] = {}
        self._taken: list[Taken] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for core in affinity.cores():
                command = [sys.executable, "-m", "ringcast.lab.bounds.witness", str(core)]
                process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
                stack.callback(process.kill)
                self.processes.append(process)
            for process in self.processes:
                assert process.stdout is not None
                if not process.stdout.readline():
                    raise LabError("no witness may run before all other threads here: run it as root")
                os.set_blocking(process.stdout.fileno(), False)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def taken(self) -> list[Taken]:
        """When a core was taken away, until now."""
        time.sleep(2 * (EVERY_NS + LATE_NS) * 1e-9)  # what happened just now is noticed at the next waking
        for number, process in enumerate(self.processes):
            assert process.stdout is not None
            said = self._unfinished.get(number, b"") + (process.stdout.read() or b"")
            *lines, self._unfinished[number] = said.split(b"\n")
            for line in lines:
                began, done = line.split()
                self._taken.append((int(began), int(done)))
        return list(self._taken)


def undisturbed(spans: Iterable[Taken], taken: Iterable[Taken]) -> list[Taken]:
    """Pure. The spans of time during which no core was taken away."""
    absent = list(taken)
    return [(began, done) for began, done in spans if not any(a < done and b > began for a, b in absent)]


def cost_s() -> float:
    """Processor time that a witness takes each time it wakes, in 99 of 100 wakings. It delays streams as any other work
    does."""
    found = []
    for _ in range(_WAKES):
        before = time.thread_time_ns()
        time.sleep(EVERY_NS * 1e-9)
        time.monotonic_ns()
        found.append(time.thread_time_ns() - before)
    return sorted(found)[int(_SLOWEST * _WAKES)] * 1e-9


def main() -> int:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        os.sched_setaffinity(0, {int(sys.argv[1])})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO))
    except PermissionError:
        return 1
    os.write(1, b"ready\n")
    clock, sleep = time.monotonic_ns, time.sleep
    while True:
        now = clock()
        sleep(EVERY_NS * 1e-9)
        woken = clock()
        if woken - now > EVERY_NS + LATE_NS:
            os.write(1, b"%d %d\n" % (now, woken))


if __name__ == "__main__":
    sys.exit(main())
