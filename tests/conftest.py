"""What tests share: a daemon of their own, sessions with it, and programs beside it. Nothing outlives its test.

Time limits here only keep a failing test from hanging; no test depends on how fast anything is.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import ringcast

PATIENCE_S = 30.0

pytest_plugins = ("skips",)
# A file that this machine happens to have must not decide what is tested.
os.environ["RINGCAST_CONFIG"] = ""

# A shell ignores Ctrl-C for what it runs in the background, and programs inherit that: none of ours would hear of one.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-seconds", type=float, default=10.0, help="how long random kills go on")
    parser.addoption("--soak-seed", type=int, default=1, help="what random kills follow from")


class Daemon:
    """A daemon process on a socket of its own, which can be killed and started again."""

    def __init__(self, socket_path: Path, prefix: Sequence[str] = (), **environment: str) -> None:
        self.socket_path = str(socket_path)
        self.process: subprocess.Popen[bytes] | None = None
        self._prefix = prefix
        self._environment = {**os.environ, **environment}

    def start(self, *options: str) -> Daemon:
        command = [*self._prefix, sys.executable, "-m", "ringcast", "daemon", "--socket", self.socket_path, *options]
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


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what there is no event for, such as a daemon's having noticed something."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    return wait_until


@pytest.fixture
def gone() -> Callable[[int], bool]:
    return wait_for_exit


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a daemon with options; with `prefix` before its command, and with an environment of its own."""
    made: list[Daemon] = []

    def make(*options: str, prefix: Sequence[str] = (), **environment: str) -> Daemon:
        made.append(Daemon(tmp_path / f"d{len(made)}.sock", prefix, **environment))
        return made[-1].start(*options)

    yield make
    for daemon in made:
        daemon.stop()


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    return make_daemon()


@pytest.fixture
def connect(daemon: Daemon) -> Iterator[Callable[..., ringcast.Session]]:
    """Open another session with the daemon."""
    made: list[ringcast.Session] = []

    def make() -> ringcast.Session:
        made.append(ringcast.connect(socket=daemon.socket_path, start=False))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(connect: Callable[[], ringcast.Session]) -> ringcast.Session:
    return connect()


@pytest.fixture
def run_program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Run source text as a program that finds the given daemon, or the socket at the given path."""
    made: list[Program] = []

    def run(source: str, socket_path: str) -> Program:
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(textwrap.dedent(source))
        made.append(Program(path, {**os.environ, "RINGCAST_SOCKET": socket_path}))
        return made[-1]

    yield run
    for program in made:
        program.reap()


@pytest.fixture
def program(daemon: Daemon, run_program: Callable[..., Program]) -> Callable[[str], Program]:
    """Run source text as a program beside the daemon."""
    return lambda source: run_program(source, daemon.socket_path)
