"""The Python processes that Spark's Java started: who they are, and waiting until they are gone.

Java starts one that leads a process group, and that one forks workers as they are needed. Those outlive Java for a
moment, as nobody's children. So their groups are remembered, and with them whoever is forked later. Invariant: this
process's own group is never waited for, nor killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_POLL_S = 0.01


class _Process(NamedTuple):
    pid: int
    state: str
    parent: int
    group: int


class Workers:
    """All below `root`, a process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._pids: set[int] = set()
        self._groups: set[int] = set()
        self.look()

    def look(self) -> None:
        """Remember those that there are now."""
        processes = list(_processes())
        below = {self._root}
        while more := {one.pid for one in processes if one.parent in below} - below:
            below |= more
        found = [one for one in processes if one.pid in below - {self._root}]
        self._pids |= {one.pid for one in found}
        self._groups |= {one.group for one in found} - {os.getpgrp()}

    def alive(self) -> list[int]:
        """Those known, and all in their groups, that have not ended."""
        return [
            one.pid
            for one in _processes()
            if (one.pid in self._pids or one.group in self._groups) and one.state not in "ZX"
        ]

    def await_end(self, patience_s: float) -> None:
        """Returns when all are gone; those that are not by then are killed."""
        deadline = time.monotonic() + patience_s
        while left := self.alive():
            if time.monotonic() > deadline:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)


def _processes() -> Iterator[_Process]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                # The name of the program comes in brackets and may have any characters in it.
                state, parent, group, *_ = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except (OSError, ValueError):
                continue  # it has ended
            yield _Process(int(place.name), state, int(parent), int(group))
