"""A publisher for asyncio. Sending is the native call in place; only for a reliable reader without room is waited, on a
thread.

Invariant: messages go out in the order in which they were given, also while one of them waits for room.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Generic, ParamSpec, TypeVar

from ringcast.aio.closing import AsyncClosing
from ringcast.aio.threads import Threads
from ringcast.client.rings.published import pauses_s
from ringcast.errors import WouldBlock
from ringcast.message import Reservation, T_contra
from ringcast.model.identity import PublisherInfo
from ringcast.model.priority import Level
from ringcast.publisher import Publisher

_P = ParamSpec("_P")
_R = TypeVar("_R")


class AsyncPublisher(AsyncClosing[Publisher[T_contra]], Generic[T_contra]):
    """Made by `await tag.publisher()` or `await session.publisher(name)`."""

    def __init__(self, publisher: Publisher[T_contra], threads: Threads) -> None:
        super().__init__(publisher, threads)
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def send(
        self, data: T_contra, event_ns: int | None = None, discardable: bool = False, priority: Level | None = None
    ) -> int:
        """Send a message; returns its sequence number. Does not leave the loop unless a reliable reader has no room. A
        task that is cancelled while it waits for room may still send. Raises as `Publisher.send` does."""
        if not self._waiting:
            try:
                return self._thing.send_nowait(data, event_ns, discardable, priority)
            except WouldBlock:
                pass
        return await self._in_turn(self._thing.send, data, event_ns, discardable, priority)

    def send_nowait(
        self, data: T_contra, event_ns: int | None = None, discardable: bool = False, priority: Level | None = None
    ) -> int:
        """Raises WouldBlock where `send` would wait, and as `Publisher.send_nowait` does."""
        if self._waiting:
            raise WouldBlock("another task waits for a reliable reader")
        return self._thing.send_nowait(data, event_ns, discardable, priority)

    async def send_many(self, items: Sequence[T_contra], event_ns: int | None = None) -> int:
        """Send each item as a message of its own, with one wake-up; returns the number of the last one. Raises as
        `Publisher.send_many` does."""
        return await self._in_turn(self._thing.send_many, items, event_ns)

    async def reserve(self, length: int) -> Reservation:
        """Room for `length` bytes inside the ring, to be written in place. Raises as `Publisher.reserve` does."""
        return await self._in_turn(self._thing.reserve, length)

    async def _in_turn(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """On a thread, after those that wait already. A task that is cancelled keeps its turn until the thread is
        done, or the next one would overtake it."""

        async def wait() -> _R:
            try:
                async with self._turn:
                    return await self._threads.run(call, *args, **kwargs)
            finally:
                self._waiting -= 1

        self._waiting += 1
        return await asyncio.shield(asyncio.create_task(wait()))

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until reliable readers are through with what was sent. Raises as `Publisher.drain` does."""
        ring, incarnation, end = self._thing._ring, self._thing.incarnation, self._thing.next_seq
        deadline = None if timeout is None else time.monotonic() + timeout
        for pause_s in pauses_s():
            if ring.drained(incarnation, end):
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"a reliable reader of {ring.tag.name!r} has not read all that was sent")
            await asyncio.sleep(pause_s)

    async def wait_for_subscribers(self, n: int = 1, timeout: float | None = None) -> int:
        """Wait until at least `n` subscriptions select this tag; returns how many do. Raises as
        `Publisher.wait_for_subscribers` does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for pause_s in pauses_s():
            try:
                return self._thing.wait_for_subscribers(n, 0)
            except TimeoutError:
                if deadline is not None and time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable")

    @property
    def info(self) -> PublisherInfo:
        return self._thing.info

    @property
    def incarnation(self) -> int:
        """Raises ClosedError, ForkedError."""
        return self._thing.incarnation

    @property
    def next_seq(self) -> int:
        """Raises ClosedError, ForkedError."""
        return self._thing.next_seq

    @property
    def subscribers(self) -> int:
        """How many subscriptions select this tag, as far as the daemon has said."""
        return self._thing.subscribers

    def counters(self) -> dict[str, int]:
        """Raises ClosedError, ForkedError."""
        return self._thing.counters()
