"""NATS: nats-py against the distribution's nats-server, on loopback. asyncio is its only interface.

Core NATS promises no delivery: a subscriber that falls behind is cut off by the server. The client's own limits are
lifted here, so that only the server's can bite; the sink counts. Histories are JetStream's, in memory.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import time
from array import array
from collections.abc import Coroutine
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any, TypeVar

import nats
import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg

from ends.asynchronous import AsyncLink
from ends.crowd import Crowd
from ends.interface import IDLE_S, PAYLOAD, STOP, Keeper, Link, Peer, Place, Puller, Sink, Source
from ends.tally import Tally

T = TypeVar("T")
FLUSH_EVERY = 1000


def _server() -> str | None:
    """Where setup_peers.sh unpacked it, unless the machine has one."""
    unpacked = Path(sys.prefix) / "debian" / "usr" / "sbin" / "nats-server"
    return shutil.which("nats-server") or (str(unpacked) if unpacked.exists() else None)


class _Client:
    """A connection and the loop it lives on; the loop runs only inside a command."""

    def __init__(self, place: Place) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.client: Client = self.run(nats.connect(f"nats://127.0.0.1:{place.port}", pending_size=1 << 26))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def subscribe(self, subject: str, callback: Any) -> None:
        await self.client.subscribe(subject, cb=callback, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await self.client.flush()

    def close(self) -> None:
        self.run(self.client.close())
        self.loop.close()


class _Link(AsyncLink):
    """The pong side answers from its callback; the ping side waits for a future that its callback resolves."""

    def __init__(self, place: Place, side: str) -> None:
        self._held = _Client(place)
        self.loop = self._held.loop
        out, heard = ("there", "back") if side == "ping" else ("back", "there")
        self._subject = f"{place.token}.{out}"
        self._answer: asyncio.Future[bytes] = self.loop.create_future()
        self._over = asyncio.Event()
        self._held.run(self._held.subscribe(f"{place.token}.{heard}", self._take if side == "ping" else self._echo))

    async def _take(self, message: Msg) -> None:
        self._answer.set_result(message.data)

    async def _echo(self, message: Msg) -> None:
        if message.data == STOP:
            self._over.set()
        else:
            await self._held.client.publish(self._subject, message.data)

    async def send_async(self, data: bytes) -> None:
        await self._held.client.publish(self._subject, data)

    async def recv_async(self) -> bytes:
        data = await self._answer
        self._answer = self.loop.create_future()
        return data

    async def _pong(self) -> None:
        await self._over.wait()

    async def _stop(self) -> None:
        await self.send_async(STOP)
        await self._held.client.flush()

    def close(self) -> None:
        self._held.close()


class _Asking(AsyncLink):
    """`request`, and a subscription that responds from its callback."""

    def __init__(self, place: Place, side: str) -> None:
        self._held = _Client(place)
        self.loop = self._held.loop
        self._subject = f"{place.token}.asked"
        self._over = asyncio.Event()
        if side == "pong":
            self._held.run(self._held.subscribe(self._subject, self._answer))

    async def _answer(self, message: Msg) -> None:
        await message.respond(message.data)
        if message.data == STOP:
            await self._held.client.flush()
            self._over.set()

    async def _ping(self, count: int, limit_s: float) -> list[int]:
        request, clock = self._held.client.request, time.perf_counter_ns
        samples = array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            await request(self._subject, PAYLOAD, timeout=IDLE_S)
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    async def _pong(self) -> None:
        await self._over.wait()

    async def _stop(self) -> None:
        await self._held.client.request(self._subject, STOP, timeout=IDLE_S)

    def close(self) -> None:
        self._held.close()


class _Source(Source):
    def __init__(self, place: Place) -> None:
        self._held = _Client(place)
        self._subject = f"{place.token}.stream"

    def pump(self, count: int) -> None:
        self._held.run(self._pump(count))

    async def _pump(self, count: int) -> None:
        # Publishing only fills a buffer; without a flush now and then the client would swallow the whole stream first.
        client = self._held.client
        for number in range(1, count + 1):
            await client.publish(self._subject, PAYLOAD)
            if number % FLUSH_EVERY == 0:
                await client.flush()
        await client.flush()

    def pump_large(self, count: int, size: int) -> None:
        self._held.run(self._pump_large(count, size))

    async def _pump_large(self, count: int, size: int) -> None:
        client = self._held.client
        body = np.empty(size // 8, dtype=np.uint64)
        for value in range(count):
            body.fill(value)
            await client.publish(self._subject, body.tobytes())
            if value % 16 == 15:
                await client.flush()
        await client.flush()

    def close(self) -> None:
        self._held.close()


class _Sink(Sink):
    def __init__(self, place: Place) -> None:
        self._held = _Client(place)
        self._over = asyncio.Event()
        self._tally = Tally(self._over.set)
        self._held.run(self._held.subscribe(f"{place.token}.stream", self._take))

    async def _take(self, message: Msg) -> None:
        self._tally.add(message.data)

    def expect(self, count: int, large: bool = False) -> None:
        self._over.clear()
        self._tally.begin(count, sums=large)

    async def _drain(self) -> dict[str, int]:
        before = -1
        # Silence for a whole interval means that the rest is lost.
        while not self._over.is_set() and self._tally.received != before:
            before = self._tally.received
            try:
                await asyncio.wait_for(self._over.wait(), IDLE_S)
            except TimeoutError:
                continue
        return self._tally.report()

    def drain(self, count: int) -> dict[str, int]:
        return self._held.run(self._drain())

    def drain_large(self, count: int, size: int) -> dict[str, int]:
        return self._held.run(self._drain())

    def close(self) -> None:
        self._held.close()


class _Keeper(Keeper):
    def __init__(self, place: Place) -> None:
        self._held = _Client(place)
        self._stream = self._held.client.jetstream()

    def match(self, others: int, timeout_s: float) -> None:
        config = nats.js.api.StreamConfig(
            name="KEPT", subjects=["kept"], storage=nats.js.api.StorageType.MEMORY, allow_direct=True
        )
        self._held.run(self._stream.add_stream(config))

    def keep(self, count: int) -> int:
        return self._held.run(self._keep(count))

    async def _keep(self, count: int) -> int:
        for _ in repeat(None, count):
            acknowledged = await self._stream.publish("kept", PAYLOAD)
        return acknowledged.seq

    def close(self) -> None:
        self._held.close()


class _Puller(Puller):
    def __init__(self, place: Place) -> None:
        self._held = _Client(place)
        self._stream = self._held.client.jetstream()

    def pull_latest(self, count: int) -> list[int]:
        return self._held.run(self._pull(count, None))

    def pull_at(self, count: int, seq: int) -> list[int]:
        return self._held.run(self._pull(count, seq))

    async def _pull(self, count: int, seq: int | None) -> list[int]:
        get, last, clock = self._stream.get_msg, self._stream.get_last_msg, time.perf_counter_ns
        samples = array("q")
        for back in range(count):
            start = clock()
            if seq is None:
                await last("KEPT", "kept", direct=True)
            else:
                await get("KEPT", seq - back % 64, direct=True)
            samples.append(clock() - start)
        return samples.tolist()

    def close(self) -> None:
        self._held.close()


class _Crowd(Crowd):
    """Through the server and back; a subscription counts when the server has confirmed it (`flush`)."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._held = _Client(place)
        self._subscription = self._held.run(self._held.client.subscribe("probe"))
        self._held.run(self._held.client.flush())

    def hold(self, first: int, count: int) -> None:
        self._held.run(self._subscribe(first, count))

    async def _subscribe(self, first: int, count: int) -> None:
        for i in range(first, first + count):
            await self._held.client.subscribe(f"held.{i}")
        await self._held.client.flush()

    def once(self, data: bytes) -> None:
        self._held.run(self._once(data))

    async def _once(self, data: bytes) -> None:
        await self._held.client.publish("probe", data)
        await self._subscription.next_msg(IDLE_S)

    def subscribe_once(self) -> None:
        self._held.run(self._subscribe_once())

    async def _subscribe_once(self) -> None:
        subscription = await self._held.client.subscribe("held.0")
        await self._held.client.flush()
        await subscription.unsubscribe()

    def connect_once(self) -> None:
        self._held.run(self._connect_once())

    async def _connect_once(self) -> None:
        await (await nats.connect(f"nats://127.0.0.1:{self._place.port}")).close()

    def close(self) -> None:
        self._held.close()


class Nats(Peer):
    name = "nats"
    # No poll: the event loop always sleeps. No fan-out: publishing hands the message to a task that writes it later,
    # and the server multiplies it, so the call's time says nothing about the number of subscribers.
    offers = frozenset({"block", "asyncio", "stream", "large", "pull", "pull-at", "ask", "ask-network", "crowd"})
    serves = True

    def version(self) -> str:
        if _server() is None:
            raise ImportError("there is no nats-server; bench/setup_peers.sh brings the distribution's")
        return version("nats-py")

    def server(self, place: Place) -> list[str]:
        # The default limit of a message is exactly 1 MiB, of the payload alone: enough.
        server = _server()
        assert server is not None
        return [server, "-a", "127.0.0.1", "-p", str(place.port), "-js", "-sd", str(place.folder / "jetstream")]

    def served(self, place: Place) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", place.port)) == 0

    def link(self, place: Place, side: str, waits: str) -> Link:
        return _Asking(place, side) if waits.startswith("ask") else _Link(place, side)

    def source(self, place: Place, fan_out: bool) -> Source:
        return _Source(place)

    def sink(self, place: Place, fan_out: bool) -> Sink:
        return _Sink(place)

    def keeper(self, place: Place) -> Keeper:
        return _Keeper(place)

    def puller(self, place: Place) -> Puller:
        return _Puller(place)

    def crowd(self, place: Place) -> Crowd:
        return _Crowd(place)


PEERS = [Nats()]
