"""Witnesses of a core that was taken away: by the hypervisor, for nobody else is above them.

On each core there are two. One is more urgent than everything else, only sleeps and notes when it was woken late. But
each waking moves threads that run to another core, so while task sets run it wakes seldom. The other is less urgent
than everything else, computes whenever nobody else does, and notes what passed while it neither ran nor waited behind
others (`OwnTime`). Threads of task sets do the same for the times when they run (`worker`).

`python -m ringcast.lab.bounds.witness CORE PERIOD` writes each time that was taken as a line, from and to in
nanoseconds; with period 0 it is the idle one. Invariant: no witness outlives the `with` block.
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

from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.opened import Opened

FIFO = 90
EVERY_NS, SELDOM_NS, LATE_NS = 500_000, 2_000_000, 200_000
Taken = tuple[int, int]
_PR_SET_PDEATHSIG = 1
_WAKES = 400
_AGAIN_NS = 10_000_000
"""What is lost in small pieces does not add up for longer."""
_SLOWEST = 0.99


class Witnesses(Opened):
    """Of all cores. Entering raises LabError where this user may not give real-time priorities."""

    def __init__(self, every_ns: int = EVERY_NS) -> None:
        self._every_ns = every_ns
        self.processes: list[subprocess.Popen[bytes]] = []
        self._unfinished: dict[int, bytes] = {}
        self._taken: list[Taken] = []

    def _open(self, stack: ExitStack) -> None:
        for every_ns in (self._every_ns, 0):
            for core in affinity.cores():
                command = [sys.executable, "-m", "ringcast.lab.bounds.witness", str(core), str(every_ns)]
                process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
                stack.callback(process.kill)
                self.processes.append(process)
        for process in self.processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise LabError("no witness may run before all other threads here: run it as root")
            os.set_blocking(process.stdout.fileno(), False)

    def taken(self) -> list[Taken]:
        """When a core was taken away, until now."""
        time.sleep(2 * (self._every_ns + LATE_NS) * 1e-9)  # what happened just now is noticed at the next waking
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


class OwnTime:
    """What this thread had of a span of time, and what it waited for while others had the core, as the kernel counts
    it. The rest was nobody's."""

    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self.begin()

    def begin(self) -> None:
        self.began, self._had = time.monotonic_ns(), self._had_ns()

    def notice(self, since_ns: int, taken: list[Taken]) -> None:
        """Note the span from then until now if a core was taken away in it. From then on the thread was ready, or would
        have been woken."""
        now, had = time.monotonic_ns(), self._had_ns() - self._had
        since = max(since_ns, self.began)
        if now - since - had > LATE_NS:
            taken.append((since, now))

    def close(self) -> None:
        os.close(self._file)

    def _had_ns(self) -> int:
        waited = int(os.pread(self._file, 100, 0).split()[1])
        return time.thread_time_ns() + waited


def cost_s(every_ns: int = SELDOM_NS) -> float:
    """Processor time that a witness takes each time it wakes, in 99 of 100 wakings. It delays streams as any other work
    does."""
    found = []
    for _ in range(_WAKES):
        before = time.thread_time_ns()
        time.sleep(every_ns * 1e-9)
        time.monotonic_ns()
        found.append(time.thread_time_ns() - before)
    return sorted(found)[int(_SLOWEST * _WAKES)] * 1e-9


def main() -> int:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    core, every = int(sys.argv[1]), int(sys.argv[2])
    try:
        os.sched_setaffinity(0, {core})
        if every:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO))
        else:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except PermissionError:
        return 1
    os.write(1, b"ready\n")
    if every:
        _sleep(every)
    else:
        _idle()
    return 0


def _sleep(every: int) -> None:
    clock, sleep = time.monotonic_ns, time.sleep
    now = clock()
    while True:
        sleep(every * 1e-9)
        # Since it woke last, and not since it fell asleep: the core may be taken away while it is up.
        before, now = now, clock()
        if now - before > every + LATE_NS:
            _say(before, now)


def _idle() -> None:
    clock, own = time.monotonic_ns, OwnTime()
    now = clock()
    while True:
        before, now = now, clock()
        if now - before > LATE_NS:
            taken: list[Taken] = []
            own.notice(0, taken)
            if taken:
                _say(before, now)
            own.begin()
        elif now - own.began > _AGAIN_NS:
            own.begin()


def _say(began: int, done: int) -> None:
    os.write(1, b"%d %d\n" % (began, done))


if __name__ == "__main__":
    sys.exit(main())
