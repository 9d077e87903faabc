"""The daemon under a service manager: what it tells it, how it ends, and whether the unit is one that systemd takes."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import run_ringcast

import ringcast

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian: apt-get install systemd)"
)
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed (Debian: apt-get install strace)"
)


def readable(sock: socket.socket) -> bool:
    return bool(select.select([sock], [], [], 1.0)[0])


def test_the_manager_hears_of_readiness_reloading_and_the_end(service_manager: socket.socket, make_daemon: Any) -> None:
    daemon = make_daemon(NOTIFY_SOCKET=service_manager.getsockname(), WATCHDOG_USEC="200000")
    heard = ""
    for number, until in ((None, "WATCHDOG=1"), (signal.SIGHUP, "RELOADING=1"), (None, "READY=1")):
        if number is not None:
            daemon.process.send_signal(number)
        while until not in heard:
            heard = service_manager.recv(4096).decode()
    daemon.process.send_signal(signal.SIGTERM)
    while "STOPPING=1" not in heard:
        heard = service_manager.recv(4096).decode()
    assert daemon.process.wait(30) == 0


def test_a_loop_that_hangs_is_silent(service_manager: socket.socket, make_daemon: Any) -> None:
    daemon = make_daemon(NOTIFY_SOCKET=service_manager.getsockname(), WATCHDOG_USEC="200000")
    while "WATCHDOG=1" not in service_manager.recv(4096).decode():
        pass
    daemon.process.send_signal(signal.SIGSTOP)
    service_manager.recv(4096) if readable(service_manager) else None  # what it had said before
    assert not readable(service_manager)
    daemon.process.send_signal(signal.SIGCONT)
    assert service_manager.recv(4096) == b"WATCHDOG=1"


def test_status_says_what_there_is(make_daemon: Any, tmp_path: Path) -> None:
    daemon = make_daemon("--name", "edge1", "--mesh", "team-a")
    with ringcast.connect(daemon.socket_path, start=False) as session:
        session.publisher("lab/x").send(b"1")
        text = run_ringcast("status", "--socket", daemon.socket_path)
        found = json.loads(run_ringcast("status", "--json", "--socket", daemon.socket_path).stdout)
    assert text.returncode == 0
    assert f"process {daemon.process.pid}" in text.stdout
    assert "edge1, no network" in text.stdout
    assert (found["up"], found["pid"], found["mesh"], found["clients"]) == (True, daemon.process.pid, "team-a", 1)
    assert (found["tags"], found["rings"]) == (1, 1)
    nobody = run_ringcast("status", "--json", "--socket", str(tmp_path / "nobody.sock"))
    assert (nobody.returncode, json.loads(nobody.stdout)["up"]) == (1, False)


def test_stop_waits_for_the_end(make_daemon: Any, gone: Any) -> None:
    daemon = make_daemon()
    pid = daemon.process.pid
    result = run_ringcast("stop", "--socket", daemon.socket_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"process {pid}" in result.stdout
    assert daemon.process.wait(30) == 0
    assert not os.path.exists(daemon.socket_path)
    again = run_ringcast("stop", "--socket", daemon.socket_path)
    assert again.returncode == 1
    assert "no daemon answers" in again.stderr
    daemon.process = None


def test_a_daemon_that_does_not_end_is_said_and_can_be_killed(make_daemon: Any) -> None:
    daemon = make_daemon()
    daemon.process.send_signal(signal.SIGSTOP)
    result = run_ringcast("stop", "--socket", daemon.socket_path, "--timeout", "0.2")
    assert result.returncode == 1
    assert "has not ended within 0.2 s" in result.stderr
    killed = run_ringcast("stop", "--socket", daemon.socket_path, "--timeout", "0.2", "--kill", "--json")
    assert (killed.returncode, json.loads(killed.stdout)) == (
        0, {"pid": daemon.process.pid, "socket": daemon.socket_path}
    )  # fmt: skip
    assert daemon.process.wait(30) == -signal.SIGKILL
    daemon.process = None


@needs_systemd
@pytest.mark.parametrize("scope", ["system", "user"])
def test_systemd_accepts_the_unit(tmp_path: Path, scope: str) -> None:
    unit = tmp_path / "ringcast.service"
    unit.write_text(run_ringcast("service", "--scope", scope).stdout)
    command = ["systemd-analyze", *(["--user"] if scope == "user" else []), "verify", str(unit)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert [line for line in checked.stderr.splitlines() if "ringcast" in line] == []
    assert checked.returncode == 0, checked.stderr
    unit.write_text(unit.read_text() + "[Service]\nProtectSystm=yes\n")
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert "ProtectSystm" in again.stderr  # so the check can fail


def test_the_unit_starts_this_python(tmp_path: Path) -> None:
    unit = run_ringcast("service", "--user", "robot", "--config", str(tmp_path / "a b%.toml")).stdout
    assert "User=robot" in unit
    assert f'ExecStart={sys.executable} -P -m ringcast daemon --config "{tmp_path}/a b%%.toml"' in unit
    assert run_ringcast("service", "--user", "a b").returncode == 2
    assert "User=" not in run_ringcast("service", "--scope", "user").stdout


def allowed_calls() -> set[str]:
    """What the unit's SystemCallFilter lets through, by systemd's own lists."""
    unit = run_ringcast("service").stdout
    groups = next(line.split("=")[1].split() for line in unit.splitlines() if line.startswith("SystemCallFilter="))
    found: set[str] = set()
    while groups:
        name = groups.pop()
        if not name.startswith("@"):
            found.add(name)
            continue
        listed = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True, timeout=60
        )
        groups += [line.strip() for line in listed.stdout.splitlines()[1:] if not line.strip().startswith("#")]
    return found


@needs_systemd
@needs_strace
def test_the_sandbox_leaves_the_daemon_the_system_calls_it_makes(
    tmp_path: Path, make_daemon: Any, eventually: Any, free_addresses: Any
) -> None:
    counts = tmp_path / "calls"
    one, two, metrics = free_addresses(3)
    strace = ["strace", "-f", "-qq", "-c", "-o", str(counts)]
    first = make_daemon("--name", "one", "--listen", one, "--no-scout", "--metrics", metrics, prefix=strace)
    second = make_daemon("--name", "two", "--listen", two, "--no-scout", "--peer", one)
    with ringcast.connect(first.socket_path, start=False) as here, ringcast.connect(second.socket_path) as there:
        eventually(lambda: sum(row.state == "here" for row in there.nodes()) == 2)
        subscribers = [there.subscribe("lab/a"), there.subscribe("lab/b", reliable=True), here.subscribe("lab/c")]
        publishers = [here.publisher("lab/a"), here.publisher("lab/b"), there.publisher("lab/c")]
        for publisher, subscriber in zip(publishers, subscribers, strict=True):
            publisher.send(b"x")
            subscriber.recv(timeout=30)
        there.tag("lab/a").history(at="publisher").latest()
    assert run_ringcast("stop", "--socket", first.socket_path, "--timeout", "30").returncode == 0
    first.process.wait(30)
    first.process = None
    made = {
        line.split()[-1] for line in counts.read_text().splitlines()[2:] if line and line.split()[-1].isidentifier()
    }
    assert {"memfd_create", "sendmsg", "pidfd_open", "futex"} & made
    assert made - allowed_calls() - {"total"} == set()
