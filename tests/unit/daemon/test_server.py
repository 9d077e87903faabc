"""A daemon makes a mistake of its own while it answers: the client is told at once, in words, and it is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ringcast
from ringcast import _core
from ringcast.control.answers import Done
from ringcast.control.requests import HoldBuffer, SetChannel, Subscribe
from ringcast.daemon.clients.claim import Claim
from ringcast.daemon.operate.config_file import defaults
from ringcast.daemon.operate.in_force import resolve
from ringcast.daemon.server import Server
from ringcast.testing.waiting import PATIENCE_S


def served(path: Path, client: Callable[[Server, str], None]) -> Server:
    """Run a client, on a thread, beside a server."""

    async def body() -> Server:
        claim = Claim(str(path))
        server = Server(claim, _core, resolve(defaults(), None, {}, {"name": "n1"}), idle_linger_s=None)
        ready = asyncio.Event()
        task = asyncio.create_task(server.run(ready.set))
        async with asyncio.timeout(PATIENCE_S):
            await ready.wait()
            await asyncio.to_thread(client, server, claim.socket_path)
            server.stop()
            await task
        claim.close()
        return server

    return asyncio.run(body())


def _mistake(*args: Any) -> None:
    raise KeyError("a mistake of ours")


async def _later_mistake(*args: Any) -> None:
    await asyncio.sleep(0)
    _mistake()


def test_a_mistake_at_once(tmp_path: Path) -> None:
    def client(server: Server, path: str) -> None:
        with ringcast.connect(path, start=False) as session:
            server.local._handlers[SetChannel] = _mistake
            session.tag("t")
            with pytest.raises(ringcast.RingcastError, match="failed to do SetChannel"):
                session._attachment.connection.call(SetChannel(id=0, tag="t", at="publisher"), Done)

    assert served(tmp_path / "d.sock", client).mistakes == 1


def test_a_mistake_while_others_are_asked(tmp_path: Path) -> None:
    def client(server: Server, path: str) -> None:
        with ringcast.connect(path, start=False) as session:
            server._requests._hold = _later_mistake  # type: ignore[method-assign]
            request = HoldBuffer(id=0, buffer=1, tag="t", at="node:n2", depth=1)
            with pytest.raises(ringcast.RingcastError, match="failed to do HoldBuffer"):
                session._attachment.connection.call(request, Done)

    assert served(tmp_path / "d.sock", client).mistakes == 1


def test_a_mistake_while_subscribing(tmp_path: Path) -> None:
    def client(server: Server, path: str) -> None:
        with ringcast.connect(path, start=False) as session:
            server.local._handlers[Subscribe] = _mistake
            with pytest.raises(ringcast.RingcastError, match="failed to do Subscribe"):
                session.tag("t", codec="numpy").subscribe(size=(2, 2), at="publisher")

    assert served(tmp_path / "d.sock", client).mistakes == 1
