"""What a service manager is told, read from a socket of ours in its place."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from ringcast.daemon.operate.systemd import Notifier


def test_ready_reloading_stopping(service_manager: socket.socket) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": service_manager.getsockname()})
    notifier.ready("node a")
    assert service_manager.recv(4096).decode().split("\n") == ["READY=1", f"MAINPID={os.getpid()}", "STATUS=node a"]
    notifier.reloading()
    said = dict(line.split("=") for line in service_manager.recv(4096).decode().split("\n"))
    assert said["RELOADING"] == "1"
    assert int(said["MONOTONIC_USEC"]) > 0
    notifier.stopping()
    assert service_manager.recv(4096) == b"STOPPING=1"


def test_the_watchdog_is_fed_by_the_loop(service_manager: socket.socket) -> None:
    async def rounds() -> list[bytes]:
        notifier = Notifier({"NOTIFY_SOCKET": service_manager.getsockname(), "WATCHDOG_USEC": "20000"})
        notifier.ready("x")
        said = [await asyncio.to_thread(service_manager.recv, 4096) for _ in range(4)]
        notifier.close()
        return said

    assert asyncio.run(rounds())[1:] == [b"WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "environment",
    [{"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {}],
)
def test_nobody_watches(environment: dict[str, str]) -> None:
    assert Notifier({"NOTIFY_SOCKET": "/x", **environment}).watchdog_s is None


def test_an_abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0ringcast-test-{os.getpid()}")
        sock.settimeout(30)
        Notifier({"NOTIFY_SOCKET": f"@ringcast-test-{os.getpid()}"}).stopping()
        assert sock.recv(64) == b"STOPPING=1"


def test_a_manager_that_is_gone_harms_nobody() -> None:
    Notifier({"NOTIFY_SOCKET": "/nowhere/notify"}).stopping()
    Notifier({}).ready("x")
