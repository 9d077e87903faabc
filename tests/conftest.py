"""What tests share: a daemon of their own, sessions with it, and programs beside it. Nothing outlives its test.

Time limits here only keep a failing test from hanging; no test depends on how fast anything is.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from addresses import free_addresses
from processes import Daemon, Daemons, Program, wait_for_exit

import ringcast
from ringcast.testing.waiting import PATIENCE_S, wait_until

pytest_plugins = ("skips", "failures", "browsers")
# A file that this machine happens to have must not decide what is tested.
os.environ["RINGCAST_CONFIG"] = ""

# Some tests open thousands of rings; a user's limit is often 1,024 descriptors, and may be raised by him.
_MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST, _MOST))

# A shell ignores Ctrl-C for what it runs in the background, and programs inherit that: none of ours would hear of one.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-seconds", type=float, default=10.0, help="how long random kills go on")
    parser.addoption("--soak-seed", type=int, default=1, help="what random kills follow from")


@pytest.fixture
def eventually() -> Callable[..., None]:
    return wait_until


@pytest.fixture
def gone() -> Callable[[int], bool]:
    return wait_for_exit


@pytest.fixture(name="free_addresses")
def _free_addresses() -> Callable[[int], list[str]]:
    """So many addresses of this host that nobody listens on."""
    return free_addresses


@pytest.fixture
def service_manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket on which a service manager would hear a daemon."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(PATIENCE_S)
        yield sock


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Daemons]:
    daemons = Daemons(tmp_path)
    yield daemons
    daemons.stop()


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
