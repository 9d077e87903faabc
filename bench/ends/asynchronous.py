"""The round-trip loops of `interface.Link` for an event loop: the same work, awaited."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Awaitable, Callable
from itertools import repeat

from ends.interface import PAYLOAD, STOP, Link


class AsyncLink(Link):
    """One end of a two-way exchange on a loop of its own. Subclasses give `send_async` and `recv_async`.

    The loop runs only inside a command: between commands the worker waits for the runner.
    """

    send_async: Callable[[bytes], Awaitable[object]]
    recv_async: Callable[[], Awaitable[bytes]]

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def ping(self, count: int, limit_s: float) -> list[int]:
        return self.loop.run_until_complete(self._ping(count, limit_s))

    async def _ping(self, count: int, limit_s: float) -> list[int]:
        send, recv, clock = self.send_async, self.recv_async, time.perf_counter_ns
        samples = array("q")
        end = clock() + int(limit_s * 1e9)
        for _ in repeat(None, count):
            start = clock()
            await send(PAYLOAD)
            await recv()
            now = clock()
            samples.append(now - start)
            if now > end:
                break
        return samples.tolist()

    def pong(self) -> None:
        self.loop.run_until_complete(self._pong())

    async def _pong(self) -> None:
        send, recv = self.send_async, self.recv_async
        while (data := await recv()) != STOP:
            await send(data)

    def stop(self) -> None:
        self.loop.run_until_complete(self._stop())

    async def _stop(self) -> None:
        await self.send_async(STOP)

    def close(self) -> None:
        self.loop.close()
