"""On which cores processes of an experiment run, and how urgent they are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

_TRIES = 10


def cores() -> list[int]:
    """Those this process may use, lowest first."""
    return sorted(os.sched_getaffinity(0))


def pin(pid: int, allowed: Collection[int]) -> None:
    """Bind all threads of a process, those of its libraries too.

    Again until no new one has appeared: a thread inherits the cores of its creator, which may not have been reached
    yet. Raises ProcessLookupError.
    """
    _each_thread(pid, lambda task: os.sched_setaffinity(task, set(allowed)))


def real_time(pid: int, priority: int) -> None:
    """Have all threads of a process run before everything that is not real time. Raises ProcessLookupError, OSError
    (the system does not let us)."""
    _each_thread(pid, lambda task: os.sched_setscheduler(task, os.SCHED_RR, os.sched_param(priority)))


def _each_thread(pid: int, do: Callable[[int], None]) -> None:
    done: set[int] = set()
    for _ in range(_TRIES):
        found = {int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()}
        if not found:
            raise ProcessLookupError(pid)
        if found <= done:
            return
        for task in found:
            try:
                do(task)
            except ProcessLookupError:  # it has ended
                continue
        done |= found


@contextlib.contextmanager
def awake() -> Iterator[bool]:
    """Keep idle cores from sleeping while the block runs, as measurements of real-time systems do: how long a core
    takes to wake up is the machine's. False where the system does not let us."""
    try:
        held = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    except OSError:
        yield False
        return
    try:
        os.write(held, bytes(4))
        yield True
    finally:
        os.close(held)


def cpu_ns(pid: int) -> int:
    """Time a process's living threads spent on a core. From schedstat, which does not round.

    Raises OSError when there is no such process.
    """
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def busy_s() -> tuple[float, float]:
    """Seconds that all cores were busy so far, and that the hypervisor gave to others."""
    user, nice, system, _idle, _iowait, irq, softirq, stolen = (
        int(field) / os.sysconf("SC_CLK_TCK") for field in Path("/proc/stat").read_text().split()[1:9]
    )
    return user + nice + system + irq + softirq, stolen
