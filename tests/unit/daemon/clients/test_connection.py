"""A client's connection in the event loop: what waits when it does not read, and where that ends."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ringcast.control import link
from ringcast.control.answers import Done
from ringcast.control.descriptor import Descriptor
from ringcast.control.notices import TagGone
from ringcast.control.requests import GetStatus
from ringcast.daemon.clients import connection as connection_module
from ringcast.daemon.clients.connection import Connection


class Rig:
    """A connection under test, its client's end, and what it reported."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_outbox_bytes: int = 1 << 20) -> None:
        ours, self.client = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.client.setblocking(False)
        self.broken: list[str] = []
        self.readable = 0
        self.connection = Connection(1, ours, loop, self._on_readable, self._on_broken, max_outbox_bytes)

    def _on_readable(self, connection: Connection) -> None:
        self.readable += 1
        link.receive_request(connection.socket)

    def _on_broken(self, connection: Connection, reason: str) -> None:
        self.broken.append(reason)
        connection.close()

    def fill(self) -> int:
        """Push until something waits; returns how many were pushed."""
        count = 0
        while self.connection.reading:
            self.connection.push(Done(id=count))
            count += 1
        return count

    def drain(self) -> list[int]:
        ids = []
        while True:
            try:
                received = link.receive_reply(self.client)
            except BlockingIOError:
                return ids
            if received is None:
                return ids
            ids.append(received.message.id)
            received.close()


async def turn() -> None:
    """Let the loop look at its descriptors once."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.fixture
def rigs() -> Iterator[list[Rig]]:
    made: list[Rig] = []
    yield made
    for rig in made:
        rig.client.close()


def run(rigs: list[Rig], body: Any, **how: Any) -> Rig:
    async def main() -> Rig:
        rig = Rig(asyncio.get_running_loop(), **how)
        rigs.append(rig)
        try:
            await body(rig)
        finally:
            rig.connection.close()
        return rig

    return asyncio.run(main())


def test_what_does_not_fit_waits_and_arrives_in_order(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        count = rig.fill()
        for number in range(count, count + 50):
            rig.connection.push(Done(id=number))
        link.send(rig.client, GetStatus(id=1))
        await turn()
        assert rig.readable == 0  # nothing is read from a client with answers waiting
        ids = []
        while len(ids) < count + 50:
            ids += rig.drain()
            await turn()
        assert ids == list(range(count + 50))
        await turn()
        assert rig.readable == 1
        assert rig.connection.reading
        assert rig.broken == []

    run(rigs, body)


def test_a_client_that_never_reads_is_given_up(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        for number in range(100_000):
            rig.connection.push(Done(id=number))
            if rig.broken:
                break
        assert rig.broken == ["slow"]
        rig.connection.push(Done(id=1))

    run(rigs, body, max_outbox_bytes=50_000)


def test_descriptors_stay_open_while_they_wait(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        count = rig.fill()
        descriptor = Descriptor(os.memfd_create("ring"))
        number = descriptor.fileno()
        rig.connection.push(Done(id=count), (descriptor,))
        del descriptor
        os.fstat(number)
        while count not in rig.drain():
            await turn()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)

    run(rigs, body)


def test_ending_sends_what_waits_first(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        count = rig.fill()
        rig.connection.end()
        assert rig.broken == []
        ids = []
        while not rig.broken:
            ids += rig.drain()
            await turn()
        assert rig.broken == ["bye"]
        assert ids + rig.drain() == list(range(count))

    run(rigs, body)


def test_ending_with_nothing_waiting(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        rig.connection.end()
        assert rig.broken == ["bye"]

    run(rigs, body)


def test_a_client_that_is_gone(rigs: list[Rig]) -> None:
    async def body(rig: Rig) -> None:
        rig.client.close()
        rig.connection.push(TagGone(name="a"))
        assert rig.broken == ["gone"]

    run(rigs, body)


def test_a_system_that_refuses_descriptors_in_flight_is_asked_again(
    rigs: list[Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock: the socket is writable all the while, and waiting for that would spin."""
    refusals = [errno.ETOOMANYREFS] * 3
    real = socket.socket.sendmsg

    def sendmsg(self: socket.socket, *args: Any) -> int:
        if refusals:
            raise OSError(refusals.pop(), "Too many references")
        return real(self, *args)

    async def body(rig: Rig) -> None:
        rig.connection.push(Done(id=5))
        assert not rig.connection.reading
        while not rig.connection.reading:
            await asyncio.sleep(0)
        assert rig.drain() == [5]

    monkeypatch.setattr(socket.socket, "sendmsg", sendmsg)
    monkeypatch.setattr(connection_module, "RETRY_S", 0.0)
    run(rigs, body)
    assert refusals == []


def test_who_is_greeted_or_gone_is_no_longer_expected_to_speak() -> None:
    async def live() -> None:
        loop, silent = asyncio.get_running_loop(), list[str]()
        rigs = {name: Rig(loop) for name in ("says nothing", "is greeted", "leaves")}
        for name, rig in rigs.items():
            rig.connection.expect_hello(0.0, lambda name=name: silent.append(name))  # type: ignore[misc]
        rigs["is greeted"].connection.greet()
        rigs["leaves"].connection.close()
        await asyncio.sleep(0.01)
        assert silent == ["says nothing"]
        for rig in rigs.values():
            rig.connection.close()
            rig.client.close()

    asyncio.run(live())
