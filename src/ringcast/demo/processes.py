"""The demos' processes: started, watched for early ends, and ended. Invariant: none outlives the `with` block.

Each is in a session of its own, so that Ctrl-C reaches only the program that started it. It ends when its standard
input does.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from ringcast.errors import RingcastError

_END_S = 10.0


class EndedEarly(RingcastError):
    """A process of the demo failed."""

    def __init__(self, role: str, code: int, last_words: str) -> None:
        self.role = role
        self.code = code
        super().__init__(f"the demo's process {role!r} ended early with code {code}: {last_words or 'it said nothing'}")


class Processes:
    """Processes by the name of their role. What they write to standard error is kept in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._roles: dict[int, str] = {}

    def launch(self, name: str, module: str, *arguments: str, stdout: int = subprocess.DEVNULL) -> None:
        """Run `python -m module name arguments`."""
        with self._log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, name, *arguments], stdin=subprocess.PIPE, stdout=stdout,
                stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        self._processes[name] = process
        self._roles[process.pid] = name

    def role_of(self, pid: int) -> str | None:
        """Who that is, or was."""
        return self._roles.get(pid)

    def check(self) -> None:
        """Raises EndedEarly."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise EndedEarly(name, code, self._last_words(name))

    def end(self, names: Iterable[str]) -> None:
        """Tell them that it is over, and wait for them. Raises EndedEarly for one that failed."""
        leaving = {name: self._processes.pop(name) for name in names if name in self._processes}
        for name, code in _ended(leaving).items():
            if code:
                raise EndedEarly(name, code, self._last_words(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ended(self._processes)
        self._processes.clear()

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _ended(processes: Mapping[str, subprocess.Popen[str]]) -> dict[str, int]:
    """Their exit codes."""
    for process in processes.values():
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            process.stdin.close()
    codes = {}
    for name, process in processes.items():
        try:
            codes[name] = process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            codes[name] = process.wait()
    return codes
