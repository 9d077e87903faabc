"""The kernel's threads of this machine, as `network_threads` judges them."""

from __future__ import annotations

import os
from pathlib import Path

from ringcast.daemon.priority.network_threads import Task
from ringcast.model.schedule import FIFO, OTHER, RR

_POLICIES = {os.SCHED_FIFO: FIFO, os.SCHED_RR: RR}


def tasks(proc: Path = Path("/proc")) -> list[Task]:
    """What can be read of it; threads that end meanwhile, or that nobody may look at, are left out."""
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            name = (entry / "comm").read_text().strip()
            pid = int(entry.name)
            policy = _POLICIES.get(os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK, OTHER)
            found.append(Task(pid, name, policy, os.sched_getparam(pid).sched_priority))
        except (OSError, UnicodeDecodeError):
            continue
    return found
