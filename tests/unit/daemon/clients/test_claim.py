"""Where the socket lives, who may have it, and what is left when its daemon is gone."""

from __future__ import annotations

import os
import socket
import stat
import sys
from pathlib import Path

import pytest

from ringcast.client import starting
from ringcast.client.starting import ensure_running
from ringcast.control.socket_path import default_socket_path, prepare_directory
from ringcast.daemon.clients.claim import Claim
from ringcast.errors import DaemonRunning, DaemonUnavailable


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "d.sock")


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        return sock.connect_ex(path) == 0


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RINGCAST_SOCKET", "/x/y.sock")
    assert default_socket_path() == "/x/y.sock"
    monkeypatch.delenv("RINGCAST_SOCKET")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert default_socket_path() == str(tmp_path / "ringcast" / "daemon.sock")
    last_resort = f"/tmp/ringcast-{os.geteuid()}/daemon.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "not there"))
    assert default_socket_path() == last_resort
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert default_socket_path() == last_resort


@pytest.mark.parametrize("whose", ["ours", "another's"])
def test_a_runtime_directory_kept_from_another_user_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, whose: str
) -> None:
    monkeypatch.delenv("RINGCAST_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if whose == "another's":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert default_socket_path().startswith(str(tmp_path)) is (whose == "ours")


def test_the_default_directory_is_made_private_and_must_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RINGCAST_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    prepare_directory(default_socket_path())
    directory = tmp_path / "ringcast"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    directory.chmod(0o755)
    with pytest.raises(DaemonUnavailable, match="mode 0700"):
        prepare_directory(default_socket_path())
    directory.rmdir()
    directory.symlink_to(tmp_path)
    with pytest.raises(DaemonUnavailable, match="must be a directory"):
        prepare_directory(default_socket_path())


def test_a_place_the_user_chose_is_the_users_business(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare_directory(str(tmp_path / "d.sock"))
    prepare_directory(str(tmp_path / "new" / "d.sock"))
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnavailable, match="longer than 107 bytes"):
        prepare_directory(str(tmp_path / ("x" * 120)))


def test_one_claim_per_socket(path: str) -> None:
    claim = Claim(path)
    assert connects(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(DaemonRunning) as running:
        Claim(path)
    assert running.value.pid == os.getpid()
    assert connects(path)
    claim.close()
    assert os.listdir(os.path.dirname(path)) == []
    Claim(path).close()


def test_what_a_dead_daemon_left_behind_is_no_obstacle(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(path)
    Path(path + ".pid").write_text("1\n")
    claim = Claim(path)
    assert connects(path)
    claim.close()


def test_a_file_that_is_no_socket_is_not_removed(path: str) -> None:
    Path(path).write_text("precious")
    with pytest.raises(DaemonUnavailable, match="not a socket"):
        Claim(path)
    assert Path(path).read_text() == "precious"
    assert os.listdir(os.path.dirname(path)) == ["d.sock"]


def test_no_connection_is_lost_between_refusing_and_accepting(path: str) -> None:
    claim = Claim(path)
    early = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    early.connect(path)
    claim.refuse_newcomers()
    assert not connects(path)
    accepted, _ = claim.listener.accept()
    claim.listen_again()
    assert connects(path)
    for sock in (early, accepted):
        sock.close()
    claim.close()


def test_closing_twice_does_not_remove_a_successors_socket(path: str) -> None:
    first = Claim(path)
    first.remove()
    second = Claim(path)
    first.close()
    assert connects(path)
    second.close()


def test_a_running_daemon_is_left_alone(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_spawn", lambda *_: pytest.fail("started another"))
    claim = Claim(path)
    ensure_running(path)
    claim.close()


def test_a_python_that_does_not_know_itself(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DaemonUnavailable, match="own executable"):
        ensure_running(path)


def test_a_relative_python_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"src{os.pathsep}{os.pathsep}/x")
    assert starting._environment()["PYTHONPATH"] == f"{tmp_path / 'src'}{os.pathsep}/x"
