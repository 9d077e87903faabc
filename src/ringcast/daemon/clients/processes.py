"""Seeing client processes die. By pidfd and not by end of file: forked children keep a dead process's sockets open.

Invariant: a process is watched from its first connection until it dies, or until all its sessions said goodbye; one
descriptor each, however many sessions it has. Sockets close before a process is reported dead, so the watch outlives
the last connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from ringcast.daemon.machine import pidfd_of


class Processes:
    """`on_death(pid)` is called once per process, in the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_death: Callable[[int], None]) -> None:
        self._loop = loop
        self._on_death = on_death
        self._pidfds: dict[int, int] = {}

    def watch(self, sock: socket.socket, pid: int) -> None:
        """Raises ProcessLookupError (it is dead already), OSError (no descriptor left)."""
        # A process of another pid namespace has no number here: only its end of file can be seen.
        if pid == 0 or pid in self._pidfds:
            return
        pidfd = pidfd_of(sock, pid)
        self._pidfds[pid] = pidfd
        self._loop.add_reader(pidfd, self._died, pid)

    def pidfd(self, pid: int) -> int | None:
        """Of a process that is watched."""
        return self._pidfds.get(pid)

    def release(self, pid: int) -> None:
        """All its sessions ended in good order."""
        pidfd = self._pidfds.pop(pid, None)
        if pidfd is not None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)

    def close(self) -> None:
        for pid in list(self._pidfds):
            self.release(pid)

    def _died(self, pid: int) -> None:
        self.release(pid)
        self._on_death(pid)
