"""How long programs outside an experiment had each core: by the kernel's accounts of processor time (cgroups, v1).

All processes that are started within the `with` block are in an account of their own; what the whole machine used
beside it, others had. An ordinary program that is inside the kernel is not preempted everywhere, not even by a thread
with real-time priority, so a machine on which others run is not quiet. Where there are no such accounts, nothing is
known.
Invariant: the account is gone after the block; one that a killed experiment left is removed by the next.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import ExitStack
from pathlib import Path

from ringcast.lab.testbed.opened import Opened

_NAME = "ringcast-bounds-"
_USED = "cpuacct.usage_percpu"
ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")
NONE = "-"


class Account(Opened):
    """`path` is what `Outsiders` reads, NONE where there are no accounts. Not of those that are mounted together with
    shares of processors: a new one would not allow real-time priorities."""

    def __init__(self, accounts: Path = ACCOUNTS) -> None:
        self._accounts = accounts
        self.path = NONE

    def _open(self, stack: ExitStack) -> None:
        if not (self._accounts / _USED).exists() or (self._accounts / "cpu.shares").exists():
            return
        self._sweep()
        own = self._accounts / f"{_NAME}{os.getpid()}"
        before = self._accounts / _own_account().lstrip("/")
        try:
            own.mkdir()
        except OSError:  # without root
            return
        stack.callback(self._sweep)
        _move_to(own)
        stack.callback(_move_to, before)
        self.path = str(own)

    def _sweep(self) -> None:
        for left in self._accounts.glob(f"{_NAME}*"):
            with contextlib.suppress(OSError):  # somebody is in it
                left.rmdir()


class Outsiders:
    """Of one core, for whoever runs on it. With NONE as the path it says that there are none."""

    def __init__(self, path: str, core: int) -> None:
        self._core = core
        own = Path(path)
        files = () if path == NONE else (own.parent / _USED, own / _USED)
        self._files = [os.open(file, os.O_RDONLY | os.O_CLOEXEC) for file in files]
        self._before = self._had_ns()

    def had_since(self) -> int:
        """How long they had the core since it was asked last."""
        before, self._before = self._before, self._had_ns()
        return self._before - before

    def _had_ns(self) -> int:
        used = [int(os.pread(file, 4096, 0).split()[self._core]) for file in self._files]
        return used[0] - used[1] if used else 0


def _own_account() -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            return path
    return "/"


def _move_to(account: Path) -> None:
    (account / "cgroup.procs").write_text(str(os.getpid()))
