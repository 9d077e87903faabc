"""Processes that tests start: a daemon, a program of a few lines, and the command line."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from forked_daemons import ForkedProcess, template_for

from ringcast.testing.waiting import PATIENCE_S

RINGCAST = (sys.executable, "-m", "ringcast")
Run = Callable[..., str]
Start = Callable[..., "subprocess.Popen[str]"]


def run_ringcast(*words: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """`ringcast WORDS`, run to its end. It never shows a traceback."""
    done = subprocess.run(
        [*RINGCAST, *words], input=given, capture_output=True, text=True, timeout=2 * PATIENCE_S,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def said_by_ringcast(*words: str) -> str:
    """What `ringcast WORDS` prints; it must succeed."""
    done = run_ringcast(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit code of a process that ends by itself, and what it printed."""
    out, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, errors


class Daemon:
    """A daemon process on a socket of its own, which can be killed and started again."""

    def __init__(
        self, socket_path: Path, prefix: Sequence[str] = (), *, forked: bool = True, **environment: str
    ) -> None:
        self.socket_path = str(socket_path)
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._prefix = prefix
        self._environment = {**os.environ, **environment}
        self._forked = forked and not prefix

    def start(self, *options: str) -> Daemon:
        arguments = ["daemon", "--socket", self.socket_path, *options]
        if self._forked and (template := template_for(self._environment)) is not None:
            self.process = template.start(arguments, self._environment)
        else:
            command = [*self._prefix, *RINGCAST, *arguments]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=self._environment)
        deadline = time.monotonic() + PATIENCE_S
        while not self._listens():
            assert self.process.poll() is None, f"the daemon ended with {self.process.returncode}"
            assert time.monotonic() < deadline, "the daemon does not listen"
            wait_for_exit(self.process.pid, 0.01)
        return self

    def kill(self) -> None:
        """As SIGKILL does it: nobody is told, nothing is tidied up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)
            self.process = None

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            return probe.connect_ex(self.socket_path) == 0


class Daemons:
    """Daemons with their sockets in `folder`. `forked`: from a process that has imported everything."""

    def __init__(self, folder: Path, *, forked: bool = True) -> None:
        self._folder = folder
        self._forked = forked
        self._made: list[Daemon] = []

    def __call__(self, *options: str, prefix: Sequence[str] = (), **environment: str) -> Daemon:
        """Start one with options; with `prefix` before its command, and with an environment of its own."""
        self._made.append(Daemon(self._folder / f"d{len(self._made)}.sock", prefix, forked=self._forked, **environment))
        return self._made[-1].start(*options)

    def stop(self) -> None:
        for daemon in self._made:
            daemon.stop()


class Program:
    """A Python program in a process of its own. It says lines and is told lines."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        self._unread = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                self.process.kill()
                _, errors = self.process.communicate()
                pytest.fail(f"the program printed no line; it said {self._unread!r} and {errors.decode()}")
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def expect(self, *lines: str) -> None:
        for line in lines:
            assert self.line() == line

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def end(self, status: int = 0) -> str:
        """Wait for its end; returns what it still had to print."""
        rest, errors = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == status, errors.decode()
        return (self._unread + rest).decode()

    def reap(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


def wait_for_exit(pid: int, timeout: float = PATIENCE_S) -> bool:
    """Whether the process, which need not be a child, is gone within `timeout`."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], timeout)[0])
    finally:
        os.close(fd)
