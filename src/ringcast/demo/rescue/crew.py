"""The processes of the search and rescue: started, begun together, watched for early ends, and ended.

Each is in a session of its own, so that Ctrl-C reaches the director only, and ends when its standard input does.
Invariant: none outlives the `with` block.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from ringcast.demo.rescue.roles import Role
from ringcast.demo.small.troupe import EndedEarly
from ringcast.errors import BrokenError

READY_S = 60.0
_END_S = 10.0


class Crew:
    """`sockets` are those of the nodes by name; what processes write to standard error is kept in `directory`."""

    def __init__(self, sockets: Mapping[str, str], directory: Path, recording: Path) -> None:
        self._sockets = sockets
        self._directory = directory
        self._recording = recording
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._ready: queue.Queue[str] = queue.Queue()
        self._said: dict[str, str] = {}

    def start(self, roles: Sequence[Role]) -> None:
        for role in roles:
            socket = self._sockets[role.node]
            with self._log(role.name).open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "ringcast.demo.rescue.actor", role.name, socket, str(self._recording)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
                )  # fmt: skip
            self._processes[role.name] = process
            threading.Thread(target=self._hear, args=(role.name, process), name=role.name, daemon=True).start()

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

    def check(self) -> None:
        """Raises EndedEarly."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise EndedEarly(name, code, self._last_words(name))

    def end(self, roles: Sequence[Role]) -> None:
        """Give them their cue, then wait for them. Raises EndedEarly for one that failed."""
        leaving = {role.name: self._processes.pop(role.name) for role in roles if role.name in self._processes}
        for name, code in _ended(leaving).items():
            if code:
                raise EndedEarly(name, code, self._last_words(name))

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ended(self._processes)
        self._processes.clear()

    def _hear(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line == "ready\n":
                    self._ready.put(name)
                else:
                    self._said[name] = line

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _ended(processes: Mapping[str, subprocess.Popen[str]]) -> dict[str, int]:
    """Their exit codes."""
    for process in processes.values():
        assert process.stdin is not None
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended already
    codes = {}
    for name, process in processes.items():
        try:
            codes[name] = process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            codes[name] = process.wait()
    return codes
