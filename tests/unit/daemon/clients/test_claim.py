"""Who may have the socket, and what is left when its daemon is gone."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from ringcast.control.socket_path import MAX_PATH_BYTES
from ringcast.daemon.clients.claim import Claim
from ringcast.errors import DaemonRunning, DaemonUnavailable


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "d.sock")


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        return sock.connect_ex(path) == 0


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


def test_others_who_may_connect_may_do_so_from_the_first_moment(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    listen = socket.socket.listen

    def note(sock: socket.socket, backlog: int) -> None:
        modes.append(stat.S_IMODE(os.stat(sock.getsockname()).st_mode))
        listen(sock, backlog)

    monkeypatch.setattr(socket.socket, "listen", note)
    for shared in (False, True):
        Claim(path, shared=shared).close()
    assert modes == [0o600, 0o666]


@pytest.mark.parametrize("length", [0, MAX_PATH_BYTES])
def test_whoever_sees_the_socket_can_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    """But where its name is so long that there is no room for another one meanwhile."""
    path = str(tmp_path / "d").ljust(length, "d")
    seen = []
    listen = socket.socket.listen

    def look(sock: socket.socket, backlog: int) -> None:
        seen.append(os.path.exists(path))
        listen(sock, backlog)

    monkeypatch.setattr(socket.socket, "listen", look)
    claim = Claim(path)
    assert connects(path)
    claim.close()
    assert seen == [len(path) == MAX_PATH_BYTES]
    assert os.listdir(tmp_path) == []


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
