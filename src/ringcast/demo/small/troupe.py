"""The demo's processes: started, watched for early ends, and ended. Invariant: none outlives the `with` block.

Each is in a session of its own, so that Ctrl-C reaches the director only, and ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from ringcast.demo.small.cast import Role
from ringcast.errors import RingcastError

_END_S = 5.0


class EndedEarly(RingcastError):
    """A process of the demo failed."""

    def __init__(self, role: str, code: int, last_words: str) -> None:
        self.role = role
        self.code = code
        super().__init__(f"the demo's process {role!r} ended early with code {code}: {last_words or 'it said nothing'}")


class Troupe:
    """Processes by the name of their role. What they write to standard error is kept in `directory`."""

    def __init__(self, socket_path: str, directory: Path) -> None:
        self._socket_path = socket_path
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._roles: dict[int, str] = {}

    def start(self, roles: Sequence[Role]) -> None:
        for role in roles:
            with self._log(role.name).open("wb") as log:
                self._processes[role.name] = subprocess.Popen(
                    [sys.executable, "-P", "-m", "ringcast.demo.small.actor", role.name, self._socket_path],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
                )  # fmt: skip
            self._roles[self._processes[role.name].pid] = role.name

    def role_of(self, pid: int) -> str | None:
        """Who that is, or was."""
        return self._roles.get(pid)

    def check(self) -> None:
        """Raises EndedEarly."""
        for name, process in self._processes.items():
            code = process.poll()
            if code:
                raise EndedEarly(name, code, self._last_words(name))

    def end(self, roles: Sequence[Role]) -> None:
        """Give them their cue, then wait for them. Raises EndedEarly for one that failed."""
        leaving = {role.name: self._processes[role.name] for role in roles if role.name in self._processes}
        for process in leaving.values():
            if process.stdin is not None and not process.stdin.closed:
                process.stdin.close()
        for name, process in leaving.items():
            try:
                code = process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            del self._processes[name]
            if code:
                raise EndedEarly(name, code, self._last_words(name))

    def __enter__(self) -> Troupe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes.values():
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
