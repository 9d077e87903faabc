"""A subscriber's descriptor in an asyncio event loop.

The loop watches a copy of the descriptor, because a loop must forget a descriptor before it is closed, and only the
loop's own thread may tell it so. It stays watched from one wait to the next; a readable descriptor that nobody waits
for is dropped from the loop, or the loop would spin.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TypeVar

from ringcast.client.descriptors import copies
from ringcast.errors import BusyError, ClosedError, RingcastError

_T = TypeVar("_T")


class Readiness:
    """Waits for `fd` on behalf of one task at a time. `quiet` says that there is nothing to take after all: a loop may
    tell of a descriptor once more after the task has emptied it. Raises ResourceLimit."""

    def __init__(self, fd: int, whose: str = "subscriber", quiet: Callable[[], bool] = lambda: False) -> None:
        self._whose = whose
        self._quiet = quiet
        self._fd = copies((fd,))[0]
        self._watched = self._fd
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def receive(
        self, take: Callable[[], _T | None], failure: Callable[[], RingcastError | None], timeout: float | None
    ) -> _T:
        """What `take` returns once that is not None.

        Raises TimeoutError, BusyError (another task waits), ClosedError, what `failure` returns, what `take` raises.
        """
        if (found := take()) is not None:
            return found
        if self._waiter is not None:
            raise BusyError(self._whose)
        if timeout is None:
            return await self._wait(take, failure)
        try:
            async with asyncio.timeout(timeout):
                return await self._wait(take, failure)
        except TimeoutError:
            raise TimeoutError(f"no message within {timeout:g} s") from None

    async def _wait(self, take: Callable[[], _T | None], failure: Callable[[], RingcastError | None]) -> _T:
        loop = asyncio.get_running_loop()
        while True:
            if (error := failure()) is not None:
                raise error
            self._watch(loop)
            self._waiter = loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
            if (found := take()) is not None:
                return found

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._fd < 0:
            raise ClosedError(self._whose)
        if self._loop is not loop:
            self._unwatch()
            self._watched = self._fd
            loop.add_reader(self._watched, self._signalled)
            self._loop = loop
            if self._fd < 0:  # another thread closed it in this moment
                self._unwatch()
                raise ClosedError(self._whose)

    def _signalled(self) -> None:
        if self._waiter is None:
            self._unwatch()
        elif not self._waiter.done() and not self._quiet():
            self._waiter.set_result(None)

    def _unwatch(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        if loop is _running():
            loop.remove_reader(self._watched)
        else:
            loop.call_soon_threadsafe(loop.remove_reader, self._watched)

    def close(self) -> None:
        """From any thread: whoever waits gets ClosedError."""
        loop = self._loop
        if loop is None or loop.is_closed() or loop is _running():
            self._finish()
            return
        try:
            loop.call_soon_threadsafe(self._finish)
        except RuntimeError:  # closed in this moment, and its selector with it
            self._finish()

    def _finish(self) -> None:
        if self._fd < 0:
            return
        self._unwatch()
        os.close(self._fd)
        self._fd = -1
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(ClosedError(self._whose))


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
