"""What the machine says about itself."""

from __future__ import annotations

import os
import pwd
import select
import socket
from pathlib import Path
from typing import Any

import pytest

from ringcast.daemon import machine


def test_the_peer_is_whoever_made_the_socket() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        peer = machine.peer_of(ours)
        assert (peer.pid, peer.uid) == (os.getpid(), os.getuid())
        assert peer.user == pwd.getpwuid(os.getuid()).pw_name
        pidfd = machine.pidfd_of(ours, peer.pid)
    assert select.select([pidfd], [], [], 0)[0] == []
    assert not os.get_inheritable(pidfd)
    os.close(pidfd)


def test_an_old_kernel_is_asked_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def getsockopt(self, *_: Any) -> int:
            raise OSError(92, "Protocol not available")

    pidfd = machine.pidfd_of(Old(), os.getpid())  # type: ignore[arg-type]
    os.close(pidfd)


def test_a_user_without_a_name() -> None:
    assert machine._user(4_000_000_000) == "4000000000"


def test_the_node_is_called_after_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "büro rechner/1")
    assert machine.node_name() == "b-ro-rechner-1"
    monkeypatch.setattr(socket, "gethostname", lambda: "")
    assert machine.node_name() == "node"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc": "0::/a/b\n", "a/memory.max": "5000", "a/b/memory.max": "max"}, 5000),
        ({"proc": "0::/a/b\n", "memory.max": "7000", "a/b/memory.max": "6000"}, 6000),
        ({"proc": "4:memory:/m\n0::/\n", "memory/m/memory.limit_in_bytes": "4000"}, 4000),
        ({"proc": "4:memory:/the/hosts\n", "memory/memory.limit_in_bytes": "3000"}, 3000),
        ({"proc": "0::/a\n"}, None),
    ],
    ids=["parent", "root and leaf", "version 1", "inside a container", "no limit"],
)
def test_the_smallest_cgroup_limit_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    real = machine._read
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "_read", lambda path: files["proc"] if path == "/proc/self/cgroup" else real(path))
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.memory_bytes() == (expected or physical)
