"""What the numbers were measured on, and where its processes run."""

from __future__ import annotations

import os
import time
from dataclasses import astuple, dataclass
from pathlib import Path


def cores() -> list[int]:
    """The cores this process may use, lowest first."""
    return sorted(os.sched_getaffinity(0))


def pin(pid: int, allowed: set[int]) -> None:
    """Bind every thread of a process to `allowed`.

    Threads of the libraries count too, so all of `/proc/PID/task` is set, again until no new thread has appeared: a new
    one inherits the mask of its creator, which may not have been reached yet.
    """
    done: set[int] = set()
    for _ in range(10):
        tasks = {int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()}
        if tasks <= done:
            return
        for task in tasks:
            try:
                os.sched_setaffinity(task, allowed)
            except ProcessLookupError:
                continue
        done |= tasks


def cpu_ns(pid: int) -> int:
    """Time the live threads of a process spent on a core. From schedstat: exact, where ticks would round to 0."""
    total = 0
    for entry in Path(f"/proc/{pid}/task").iterdir():
        total += int((entry / "schedstat").read_text().split()[0])
    return total


@dataclass(frozen=True)
class Usage:
    """Seconds: by the clock, of all cores, of this run's own processes, and stolen by the hypervisor."""

    clock: float
    busy: float
    own: float
    stolen: float

    def __sub__(self, before: Usage) -> Usage:
        pairs = zip(astuple(self), astuple(before), strict=True)
        return Usage(*(now - then for now, then in pairs))

    @property
    def others_percent(self) -> float:
        """What other programs used, in percent of one core: the noise in the figures."""
        return max(0.0, 100 * (self.busy - self.own) / self.clock)

    @property
    def stolen_percent(self) -> float:
        return 100 * self.stolen / self.clock


def usage() -> Usage:
    """The totals so far. A worker counts as this run's own once it has ended and been waited for."""
    user, nice, system, _idle, _iowait, irq, softirq, stolen = (
        int(field) / os.sysconf("SC_CLK_TCK") for field in Path("/proc/stat").read_text().split()[1:9]
    )
    own = os.times()
    spent = own.user + own.system + own.children_user + own.children_system
    return Usage(time.monotonic(), user + nice + system + irq + softirq, spent, stolen)
