"""Witnesses of a core that was taken away by the hypervisor, and of one that was kept by an ordinary program.

A **witness** on each core is less urgent than everything else, computes whenever nobody else does, and notes when the
core stood still: time that passed between two looks at the clock, though it did not wait behind others. Threads of task
sets do the same while they compute (`worker`), and for the times when they neither ran nor waited behind others
(`OwnTime`). Both are needed: of what a hypervisor takes, the kernel counts some as nobody's (steal), and the rest as if
the thread there had run. With an account of the experiment's processes (`outsiders`) it notes too when others had the
core for as long. Witnesses disturb nobody; what they see is left out.

A **sleeper** on each core is more urgent than everything else, sleeps, and notes how late it was woken. Where no
hypervisor took the core, something in the kernel kept it that cannot be preempted.

`python -m ringcast.lab.bounds.witness CORE PERIOD ACCOUNT` writes each such time as a line, from and to in nanoseconds;
with period 0 it is a witness. Invariant: none outlives the `with` block.
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

from ringcast.lab.bounds.outsiders import NONE, Outsiders
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.opened import Opened

FIFO = 90
EVERY_NS, LATE_NS = 500_000, 200_000
Taken = tuple[int, int]
_PR_SET_PDEATHSIG = 1
_SWITCH_NS = 20_000
"""Between two looks at the clock, when nobody else had the core."""
_NOTED_NS = 50_000
"""Sleepers that are woken sooner say nothing."""


class OnCores(Opened):
    """Programs, one on each core, that write what they saw. Entering raises LabError where this user may not give
    real-time priorities that they need."""

    every_ns = 0

    def __init__(self, account: str = NONE) -> None:
        self._account = account
        self.processes: list[subprocess.Popen[bytes]] = []
        self._unfinished: dict[int, bytes] = {}
        self._seen: list[Taken] = []

    def _open(self, stack: ExitStack) -> None:
        for core in affinity.cores():
            command = [sys.executable, "-m", "ringcast.lab.bounds.witness", str(core), str(self.every_ns),
                       self._account]  # fmt: skip
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            self.processes.append(process)
        for process in self.processes:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise LabError("no thread may run before all others here: run it as root")
            os.set_blocking(process.stdout.fileno(), False)

    def seen(self) -> list[Taken]:
        """Until now."""
        time.sleep(2 * (EVERY_NS + LATE_NS) * 1e-9)  # what happened just now is noticed a moment later
        for number, process in enumerate(self.processes):
            assert process.stdout is not None
            said = self._unfinished.get(number, b"") + (process.stdout.read() or b"")
            *lines, self._unfinished[number] = said.split(b"\n")
            for line in lines:
                began, done = line.split()
                self._seen.append((int(began), int(done)))
        return list(self._seen)


class Witnesses(OnCores):
    """`seen` is when a core stood still, or others had it."""


class Sleepers(OnCores):
    """`seen` is from when one was to be woken until it was."""

    every_ns = EVERY_NS


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
        self.began, self._ran, self._waited = time.monotonic_ns(), *self._counted_ns()

    def notice(self, since_ns: int, taken: list[Taken]) -> int:
        """Note the span from then until now if a core was taken away in it: from then on the thread was ready, or would
        have been woken. Returns how long it waited behind others since it began."""
        now, (ran, waited) = time.monotonic_ns(), self._counted_ns()
        since = max(since_ns, self.began)
        if now - since - (ran - self._ran) - (waited - self._waited) > LATE_NS:
            taken.append((since, now))
        return waited - self._waited

    def look(self) -> tuple[int, int]:
        """The time, and how long the thread had waited behind others until then."""
        before, now, waited = self._counted_ns()[1], time.monotonic_ns(), self._counted_ns()[1]
        while waited != before:  # it was preempted meanwhile
            before, now, waited = waited, time.monotonic_ns(), self._counted_ns()[1]
        return now, waited

    def close(self) -> None:
        os.close(self._file)

    def _counted_ns(self) -> tuple[int, int]:
        """How long the thread has run so far, and how long it waited behind others."""
        waited = int(os.pread(self._file, 100, 0).split()[1])
        return time.thread_time_ns(), waited


def main() -> int:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    core, every, account = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
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
        _idle(Outsiders(account, core))
    return 0


def _sleep(every: int) -> None:
    clock, sleep = time.monotonic_ns, time.sleep
    while True:
        due = clock() + every
        sleep(every * 1e-9)
        now = clock()
        if now - due > _NOTED_NS:
            _say(due, now)


class Core:
    """What a thread sees of the core on which it computes whenever nobody else does."""

    def __init__(self, own: OwnTime, others: Outsiders) -> None:
        self._own = own
        self._others = others
        self.now, self._waited = own.look()

    def look(self, now: int) -> Taken | None:
        """The time since the last look, if the core stood still then, or others had it for long."""
        before, self.now = self.now, now
        if now - before <= _SWITCH_NS:
            return None
        waited = self._waited
        self.now, self._waited = self._own.look()
        stood = self.now - before - (self._waited - waited)
        return (before, self.now) if max(stood, self._others.had_since()) > LATE_NS else None


def _idle(others: Outsiders) -> None:
    clock, core = time.monotonic_ns, Core(OwnTime(), others)
    while True:
        taken = core.look(clock())
        if taken is not None:
            _say(*taken)


def _say(began: int, done: int) -> None:
    os.write(1, b"%d %d\n" % (began, done))


if __name__ == "__main__":
    sys.exit(main())
