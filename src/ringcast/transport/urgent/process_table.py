"""The kernel's threads of this machine, and the interrupts of its network cards, as `network_threads` judges them."""

from __future__ import annotations

import os
from pathlib import Path

from ringcast.model.schedule import FIFO, OTHER, RR
from ringcast.transport.urgent.network_threads import Task

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


def card_interrupts(net: Path = Path("/sys/class/net")) -> set[int]:
    """The numbers of the interrupts that network cards have, as far as the kernel says; empty where it does not."""
    found: set[int] = set()
    for card in net.iterdir() if net.is_dir() else ():
        device = card / "device"
        try:
            found |= {int(one.name) for one in (device / "msi_irqs").iterdir() if one.name.isdecimal()}
        except OSError:
            pass
        try:
            found.add(int((device / "irq").read_text()))
        except (OSError, ValueError):
            continue
    return found - {0}
