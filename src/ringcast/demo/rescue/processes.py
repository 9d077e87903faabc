"""The processes of the search and rescue: started, begun together, and heard while they run."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from ringcast.demo.processes import Processes
from ringcast.demo.rescue.roles import Role
from ringcast.errors import BrokenError

READY_S = 60.0


class RescueProcesses(Processes):
    """`sockets` are those of the nodes by name."""

    def __init__(self, sockets: Mapping[str, str], directory: Path, recording: Path) -> None:
        super().__init__(directory)
        self._sockets = sockets
        self._recording = recording
        self._ready: queue.Queue[str] = queue.Queue()
        self._said: dict[str, str] = {}

    def start(self, roles: Iterable[Role]) -> None:
        for role in roles:
            self.launch(
                role.name, "ringcast.demo.rescue.actor", self._sockets[role.node], str(self._recording),
                stdout=subprocess.PIPE,
            )  # fmt: skip
            threading.Thread(
                target=self._hear, args=(role.name, self._processes[role.name]), name=role.name, daemon=True
            ).start()

    def await_ready(self) -> None:
        """Raises EndedEarly, BrokenError."""
        waiting = set(self._processes)
        left = READY_S
        while waiting:
            try:
                waiting.discard(self._ready.get(timeout=0.5))
            except queue.Empty:
                self.check()
                left -= 0.5
                if left <= 0:
                    raise BrokenError(
                        f"{', '.join(sorted(waiting))} did not start within {READY_S:g} s; is the machine busy?"
                    ) from None

    def begin(self, at_ns: int) -> None:
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.write(f"{at_ns}\n")
            process.stdin.flush()

    def last_line(self, role: Role) -> str:
        """What that process said last; empty before its first line."""
        return self._said.get(role.name, "")

    def _hear(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line == "ready\n":
                    self._ready.put(name)
                else:
                    self._said[name] = line
