"""A daemon that ends when its last client left: neither too early nor never, and under nobody's feet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringcast.client.starting import ensure_running
from ringcast.control.answers import Done
from ringcast.control.locks import FileLock
from ringcast.control.requests import Bye
from ringcast.control.socket_path import log_path, running_pid, start_lock_path
from ringcast.errors import DaemonUnavailable


@pytest.fixture
def directory(tmp_path: Path, gone: Any) -> Iterator[Path]:
    """Nothing but the daemon's own files is in here, and the daemon is gone when the test is over."""
    path = tmp_path / "auto"
    path.mkdir(mode=0o700)
    yield path
    pid = running_pid(str(path / "d.sock"))
    assert pid is None or gone(pid)


def test_it_ends_after_the_last_client(make_daemon: Any, open_wire: Any) -> None:
    daemon = make_daemon("--until-idle", "--idle-linger", "0")
    first, second = open_wire(daemon.socket_path), open_wire(daemon.socket_path)
    assert first.status().until_idle
    assert isinstance(first.ask(Bye), Done)
    assert first.receive() is None
    assert second.status().clients == 1
    second.close()
    assert daemon.process.wait(30) == 0
    assert os.listdir(os.path.dirname(daemon.socket_path)) == []


def test_it_does_not_end_while_somebody_looks_for_it(make_daemon: Any, open_wire: Any, gone: Any) -> None:
    daemon = make_daemon("--until-idle", "--idle-linger", "0")
    last = open_wire(daemon.socket_path)
    lock = FileLock.take_nowait(start_lock_path(daemon.socket_path))
    assert lock is not None
    with lock:
        last.close()
        assert not gone(daemon.process.pid, 0.3)
        late = open_wire(daemon.socket_path)
    assert late.status().clients == 1
    late.close()
    assert daemon.process.wait(30) == 0


def test_starting_one_waits_until_it_listens(directory: Path, open_wire: Any) -> None:
    path = str(directory / "d.sock")
    ensure_running(path)
    pid = open_wire(path).status().pid
    assert pid == running_pid(path) != os.getpid()
    assert os.getsid(pid) != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert f"PPid:\t{os.getpid()}\n" not in Path(f"/proc/{pid}/status").read_text()
    ensure_running(path)
    assert running_pid(path) == pid


def test_it_opens_no_port_and_inherits_nothing(directory: Path, open_wire: Any) -> None:
    path = str(directory / "d.sock")
    ours = os.memfd_create("inherited", 0)
    os.set_inheritable(ours, True)
    ensure_running(path)
    wire = open_wire(path)
    pid = wire.status().pid
    targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert not any("inherited" in target for target in targets)
    sockets = {target[8:-1] for target in targets if target.startswith("socket:")}
    for table in ("tcp", "tcp6", "udp", "udp6", "raw"):
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:] if Path(f"/proc/net/{table}").exists() else []
        assert not any(line.split()[9] in sockets for line in lines)
    os.close(ours)


def test_programs_that_start_together_share_one(directory: Path, open_wire: Any, gone: Any) -> None:
    path = str(directory / "d.sock")
    source = (
        "import sys; from ringcast.client.starting import ensure_running; "
        "from ringcast.control.socket_path import running_pid; ensure_running(sys.argv[1]); "
        "print(running_pid(sys.argv[1]), flush=True); input()"
    )
    programs = [
        subprocess.Popen([sys.executable, "-c", source, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(5)
    ]
    keeper = None
    pids = set()
    for program in programs:
        assert program.stdout is not None
        pids.add(int(program.stdout.readline()))
        keeper = keeper or open_wire(path)
    for program in programs:
        program.communicate(b"\n", timeout=30)
    assert len(pids) == 1
    assert keeper is not None
    keeper.close()
    assert gone(pids.pop())
    assert os.listdir(directory) == []


def test_a_killed_one_is_replaced(directory: Path, open_wire: Any, gone: Any) -> None:
    path = str(directory / "d.sock")
    ensure_running(path)
    wire = open_wire(path)
    first = wire.status().pid
    os.kill(first, 9)
    assert wire.receive() is None
    assert gone(first)
    ensure_running(path)
    assert open_wire(path).status().pid != first


def test_a_failed_start_says_why(directory: Path) -> None:
    path = directory / "d.sock"
    path.write_text("in the way")
    with pytest.raises(DaemonUnavailable) as failed:
        ensure_running(str(path))
    assert "not a socket" in failed.value.reason
    assert failed.value.socket_path == str(path)
    assert path.read_text() == "in the way"
    assert "not a socket" in Path(log_path(str(path))).read_text()


def test_a_start_that_takes_too_long_is_given_up(directory: Path) -> None:
    path = str(directory / "d.sock")
    lock = FileLock.take_nowait(start_lock_path(path))
    assert lock is not None
    with lock, pytest.raises(DaemonUnavailable, match="another program has been starting it"):
        ensure_running(path, timeout=0.1)


def test_it_ends_though_its_directory_was_removed(make_daemon: Any, open_wire: Any) -> None:
    daemon = make_daemon("--until-idle", "--idle-linger", "0")
    client = open_wire(daemon.socket_path)
    shutil.rmtree(os.path.dirname(daemon.socket_path))
    client.close()
    assert daemon.process.wait(30) == 0
