"""Who shapes an interface is noticed at once, and notices that come together are one."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ringcast.daemon.placing import queue_changes
from ringcast.daemon.placing.queue_changes import QueueChanges


def test_notices_that_come_together_are_one_change_and_none_comes_after_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> list[str]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setblocking(False)
        monkeypatch.setattr(queue_changes, "_opened", lambda: ours)
        told: list[str] = []
        first, came = asyncio.Event(), [lambda: told.append("lines"), lambda: told.append("choices")]
        changes = QueueChanges(*came, first.set)
        changes.start()
        for _ in range(3):
            theirs.send(b"a notice")
        await first.wait()
        changes.close()
        changes.close()
        theirs.close()
        return told

    assert asyncio.run(live()) == ["lines", "choices"]


def test_without_notices_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> socket.socket:
        raise PermissionError("not here")

    async def live() -> None:
        monkeypatch.setattr(queue_changes, "_opened", refused)
        changes = QueueChanges(lambda: None)
        changes.start()
        changes.close()

    asyncio.run(live())


def test_the_kernel_lets_everybody_listen() -> None:
    with queue_changes._opened() as made:
        assert not made.getblocking()
        with pytest.raises(BlockingIOError):
            made.recv(1)
