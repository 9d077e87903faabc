"""The runner's view of a worker: a process that answers one line per command, or is killed.

Invariant: every wait has a deadline, and leaving a `Worker` block leaves no process of it behind.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness import machine

BENCH = Path(__file__).resolve().parent.parent
CLOSE_S = 3.0


class PeerFailed(Exception):
    """A worker reported an error, died, or did not answer in time; the text says which."""


class PeerLacks(Exception):
    """The peer does not offer what was asked."""


class Worker:
    """One worker process, in a group of its own so that all of it can be killed.

    Not in a session of its own: Linux schedules sessions as groups (`sched_autogroup_enabled`), and switching between
    two groups takes half as long again. The floors, and programs of one terminal or service, are in one group.
    """

    def __init__(self, python: Path, adapter: str, folder: Path) -> None:
        self._log = folder / f"{adapter}-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(BENCH / "worker.py"), adapter],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=os.environ | {"TMPDIR": str(folder)},
                process_group=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands = self._process.stdin
        self._replies = self._process.stdout
        os.set_blocking(self._replies.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._replies, selectors.EVENT_READ)
        self._pending = b""
        self.pids = [self._process.pid]

    def post(self, do: str, **arguments: Any) -> None:
        """Send a command; `reply` takes its answer.

        Raises:
            PeerFailed: the worker is gone.
        """
        try:
            self._commands.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._commands.flush()
        except BrokenPipeError as exc:
            # A worker that could not import its library has left its reason in the pipe.
            self.reply(1.0)
            raise PeerFailed(self._last_words("died")) from exc

    def reply(self, timeout_s: float) -> Any:
        """The answer to the oldest unanswered command.

        Raises:
            PeerFailed: the worker reported an error, died, or took longer than `timeout_s`.
            PeerLacks: the peer does not offer this.
        """
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise PeerFailed(self._last_words(f"no answer in {timeout_s:g} s"))
            if self._selector.select(remaining):
                chunk = self._replies.read()
                if chunk == b"":
                    raise PeerFailed(self._last_words("died"))
                self._pending += chunk or b""
        line, _, self._pending = self._pending.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerFailed(answer["error"])
        if "not_offered" in answer:
            raise PeerLacks(answer["not_offered"])
        return answer["ok"]

    def ask(self, do: str, timeout_s: float, **arguments: Any) -> Any:
        """`post`, then `reply`."""
        self.post(do, **arguments)
        return self.reply(timeout_s)

    def last_words(self) -> str:
        """The error this worker has already sent but nobody has read, or nothing."""
        try:
            self.reply(0.1)
        except PeerFailed as exc:
            return "" if str(exc).startswith("no answer") else str(exc)
        except PeerLacks as exc:
            return str(exc)
        return ""

    def pin(self, *cores: int) -> None:
        """Bind all threads of this worker, and of a server it started, to these cores."""
        for pid in self.pids:
            machine.pin(pid, set(cores))

    def kill(self) -> None:
        """End the worker's whole group: first by closing its input, so that it can clean up, then by force."""
        if self._selector.get_map() is None:
            return
        try:
            self._commands.close()
            self._process.wait(CLOSE_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            pass
        self.slay()

    def slay(self) -> None:
        """End the worker's whole group at once. A second time does nothing."""
        if self._selector.get_map() is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._selector.close()
        self._replies.close()

    def _last_words(self, what: str) -> str:
        """What happened, by which signal if it was one, and the last thing the worker wrote."""
        if what == "died":
            try:
                code = self._process.wait(1.0)
                what = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            except subprocess.TimeoutExpired:
                pass
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return f"{what}: {lines[-1].strip()[:200]}" if lines else what

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failure or Ctrl-C the worker may hang in its library: no point in asking nicely.
        if kind is None:
            self.kill()
        else:
            self.slay()
