"""The listening socket's end: whoever connected is served, whoever comes too late finds nobody listening."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ringcast.control.locks import FileLock
from ringcast.control.socket_path import start_lock_path
from ringcast.daemon.clients.claim import Claim
from ringcast.daemon.clients.listener import Listener


class House:
    """A door, and those who came in."""

    def __init__(self, path: str, idle_linger_s: float | None = 0.0) -> None:
        self.path = path
        self.claim = Claim(path)
        self.inside: list[socket.socket] = []
        self.ended = asyncio.Event()
        self.listener = Listener(
            self.claim, asyncio.get_running_loop(), on_enter=self.inside.append,
            is_empty=lambda: not self.inside, on_idle=self.ended.set, idle_linger_s=idle_linger_s,
        )  # fmt: skip

    def visit(self) -> socket.socket:
        visitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            visitor.connect(self.path)
        except OSError:
            visitor.close()
            raise
        return visitor

    def close(self) -> None:
        for sock in self.inside:
            sock.close()
        self.listener.close()
        self.claim.close()


def run(path: str, body: Callable[[House], object], **how: float | None) -> None:
    async def main() -> None:
        house = House(path, **how)
        try:
            result = body(house)
            if asyncio.iscoroutine(result):
                await asyncio.wait_for(result, 30)
        finally:
            house.close()

    asyncio.run(main())


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "d.sock")


def test_nobody_comes_and_it_ends(path: str) -> None:
    async def body(house: House) -> None:
        house.listener.open()
        house.listener.nobody_inside()
        await house.ended.wait()
        assert os.listdir(os.path.dirname(path)) == []
        with pytest.raises(FileNotFoundError):
            house.visit()

    run(path, body)


def test_somebody_who_connected_at_the_last_moment_is_served(path: str) -> None:
    """They are in the kernel's queue when the door decides to close: it lets them in and stays open."""

    def body(house: House) -> None:
        visitor = house.visit()
        house.listener._end()
        assert len(house.inside) == 1
        assert not house.ended.is_set()
        house.visit().close()
        visitor.close()

    run(path, body)


def test_it_does_not_end_while_somebody_starts_it(path: str) -> None:
    async def body(house: House) -> None:
        lock = FileLock.take_nowait(start_lock_path(path))
        assert lock is not None
        house.listener._end()
        assert not house.ended.is_set()
        house.visit().close()
        house.listener.open()
        while not house.inside:
            await asyncio.sleep(0)
        house.inside.pop().close()
        lock.release()
        house.listener.nobody_inside()
        await house.ended.wait()

    run(path, body)


def test_with_somebody_inside_it_stays(path: str) -> None:
    def body(house: House) -> None:
        visitor = house.visit()
        house.listener._accept()
        house.listener._end()
        assert not house.ended.is_set()
        house.visit().close()
        visitor.close()

    run(path, body)


def test_one_that_is_to_stay_stays(path: str) -> None:
    async def body(house: House) -> None:
        house.listener.open()
        house.listener.nobody_inside()
        await asyncio.sleep(0)
        assert not house.ended.is_set()

    run(path, body, idle_linger_s=None)
