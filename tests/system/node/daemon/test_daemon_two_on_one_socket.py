"""A second daemon on a socket that has one; and a socket whose daemon is dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringcast.control.socket_path import running_pid


def run_daemon(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ringcast", "daemon", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_second_says_which_process_has_it_and_disturbs_nothing(daemon: Any, wire: Any) -> None:
    second = run_daemon("--socket", daemon.socket_path)
    assert second.returncode == 1
    assert len(second.stderr.splitlines()) == 1
    assert f"process {daemon.process.pid}" in second.stderr
    assert "--socket" in second.stderr
    assert wire.status().pid == daemon.process.pid


def test_the_socket_of_a_killed_daemon_is_taken_over(daemon: Any, open_wire: Any) -> None:
    daemon.kill()
    assert Path(daemon.socket_path).exists()
    daemon.start()
    assert open_wire(daemon.socket_path).status().pid == daemon.process.pid


def test_a_stopped_daemon_still_owns_its_socket(daemon: Any) -> None:
    """It does not answer, but it is not dead: taking its socket would cut it off for ever."""
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        assert run_daemon("--socket", daemon.socket_path).returncode == 1
    finally:
        daemon.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_told_to_stop_leaves_nothing_behind(daemon: Any, wire: Any, number: signal.Signals) -> None:
    assert running_pid(daemon.socket_path) == daemon.process.pid
    daemon.process.send_signal(number)
    assert daemon.process.wait(30) == 0
    assert wire.receive() is None
    assert os.listdir(os.path.dirname(daemon.socket_path)) == []


def test_two_nodes_on_one_machine(make_daemon: Any, open_wire: Any) -> None:
    one, two = make_daemon("--name", "one"), make_daemon("--name", "two")
    assert open_wire(one.socket_path).status().node == "one"
    assert open_wire(two.socket_path).status().node == "two"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--budget", "much"], "--budget must be a size such as"),
        (["--budget", "0"], "--budget must be a size such as"),
        (["--name", "a b"], "--name must be the name of a node"),
        (["--idle-linger", "-1"], "'-1' is not a number of seconds"),
    ],
)
def test_bad_options_are_one_sentence(tmp_path: Path, options: list[str], says: str) -> None:
    result = run_daemon("--socket", str(tmp_path / "d.sock"), *options)
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_a_place_where_no_socket_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for path in (tmp_path / "file", tmp_path / "file" / "d.sock", tmp_path / ("x" * 200)):
        result = run_daemon("--socket", str(path))
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("ringcast")
    assert os.listdir(tmp_path) == ["file"]


def test_a_budget_is_kept(make_daemon: Any, open_wire: Any) -> None:
    assert open_wire(make_daemon("--budget", "2M").socket_path).status().budget_bytes == 2 * 1024 * 1024
