"""What the gateway has to say to a page beside its streams: answers, notices, and what was pulled, in order.

Bounded: whoever may say much waits for room (`wait_for_room`); the rest is one answer per request, which a page has to
ask for. Text goes as text frames, bytes that begin with a frame's kind as binary ones.
"""

from __future__ import annotations

import asyncio
from collections import deque

_JSON = ord("{")


class Outbox:
    def __init__(self) -> None:
        self._said: deque[bytes] = deque()
        self._bytes = 0
        self._woken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def say(self, what: bytes) -> None:
        self._said.append(what)
        self._bytes += len(what)
        self._woken.set()

    def take(self) -> bytes | None:
        if not self._said:
            return None
        what = self._said.popleft()
        self._bytes -= len(what)
        self._room.set()
        return what

    def clear(self) -> None:
        """What was to be said on a connection that broke: the page asks again for what it still wants."""
        self._said.clear()
        self._bytes = 0
        self._room.set()

    def wake(self) -> None:
        """There is something in the streams."""
        self._woken.set()

    async def wait(self, timeout_s: float) -> None:
        """Until there may be something to send."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    async def wait_for_room(self, most_bytes: int) -> None:
        while self._bytes > most_bytes:
            self._room.clear()
            await self._room.wait()


def is_text(what: bytes) -> bool:
    return what[0] == _JSON
