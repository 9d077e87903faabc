"""The object by which an experiment drives a process on a node: one JSON line per command, and one per answer.

The lines are those of `bench/worker.py`, so that a peer's process is driven as ours are. Invariant: every wait has a
deadline. The process ends with the testbed, at the latest.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.node import Node
from ringcast.model.closing import Closing

PATIENCE_S = 60.0
_GRACE_S = 1.0
OURS = (sys.executable, "-m", "ringcast.lab.testbed.worker")


class ActorFailed(LabError):
    """A measuring process reported an error, died or did not answer; `node` is where it ran."""

    def __init__(self, node: str, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(f"a measuring process on node {node!r} failed: {reason}")


class Actor(Closing):
    """Leaving its `with` block ends the process."""

    def __init__(self, node: Node, command: Sequence[str] = OURS, extra: Mapping[str, str] | None = None) -> None:
        self.node = node
        # Quoted when the process fails. Not a pipe: nobody would empty it.
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the actor
        self._process = node.spawn(
            command,
            stdin=subprocess.PIPE,
            stderr=self._stderr,
            text=False,
            bufsize=0,
            env={**os.environ, **(extra or {})},
        )
        self.pid = self._process.pid
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._pending = b""

    def post(self, do: str, **arguments: Any) -> None:
        """Send a command whose answer `reply` takes. Raises ActorFailed."""
        try:
            self._commands.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        except BrokenPipeError as exc:
            self.reply(1.0)  # it may have left its reason in the pipe
            raise ActorFailed(self.node.name, self._reason("it ended")) from exc

    def reply(self, timeout_s: float = PATIENCE_S) -> Any:
        """The answer to the oldest command without one. Raises ActorFailed."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ActorFailed(self.node.name, self._reason(f"no answer in {timeout_s:g} s"))
            if self._selector.select(left):
                chunk = self._answers.read(1 << 16)
                if chunk == b"":
                    raise ActorFailed(self.node.name, self._reason("it ended"))
                self._pending += chunk or b""
        line, _, self._pending = self._pending.partition(b"\n")
        answer = json.loads(line)
        if "ok" not in answer:
            raise ActorFailed(self.node.name, answer.get("error") or answer.get("not_offered") or "no reason given")
        return answer["ok"]

    def ask(self, do: str, timeout_s: float = PATIENCE_S, **arguments: Any) -> Any:
        """`post`, then `reply`. Raises ActorFailed."""
        self.post(do, **arguments)
        return self.reply(timeout_s)

    def pin(self, *cores: int) -> None:
        """Raises ActorFailed."""
        try:
            affinity.pin(self.pid, cores)
        except OSError as exc:
            raise ActorFailed(self.node.name, self._reason("it ended")) from exc

    def close(self) -> None:
        """Let it clean up, then end it; may be called again."""
        if self._selector.get_map() is None:
            return
        with contextlib.suppress(OSError):
            self._commands.close()
        deadline = time.monotonic() + _GRACE_S
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        self._answers.close()
        self._stderr.close()

    def _reason(self, what: str) -> str:
        with contextlib.suppress(ValueError):
            self._stderr.seek(0)
            lines = [line.strip() for line in self._stderr.read().splitlines() if line.strip()]
            return f"{what}: {lines[-1][:200]}" if lines else what
        return what
