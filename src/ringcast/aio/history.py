"""A history for asyncio: what is on this node is read in place, for all else a thread asks the daemon."""

from __future__ import annotations

from typing import Generic

from ringcast.aio.closing import AsyncClosing
from ringcast.client.rings.local_history import LocalHistory
from ringcast.history import History
from ringcast.message import Message, T


class AsyncHistory(AsyncClosing[History[T]], Generic[T]):
    """Made by `await tag.history()`. Every pull raises as that of `History` does."""

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Nodes with publishers of the tag that did not answer the last pull."""
        return self._thing.unanswered

    async def latest(self, back: int = 0, copy: bool = True) -> Message[T]:
        """The newest message, or the one `back` before it, by send time over all publishers."""
        if isinstance(self._thing, LocalHistory):
            return self._thing.latest(back, copy)
        return await self._threads.run(self._thing.latest, back, copy)

    async def at(self, seq: int, *, copy: bool = True) -> Message[T]:
        """By sequence number."""
        # Of several publishers the one meant has to be asked for.
        if isinstance(self._thing, LocalHistory) and len(self._thing.incarnations) < 2:
            return self._thing.at(seq, copy=copy)
        return await self._threads.run(self._thing.at, seq, copy=copy)

    async def range(self, first: int, last: int) -> list[Message[T]]:
        """Those still held, both ends included."""
        return await self._threads.run(self._thing.range, first, last)

    async def since(self, seq: int) -> list[Message[T]]:
        """Everything held from `seq` on."""
        return await self._threads.run(self._thing.since, seq)

    async def bounds(self) -> tuple[int, int]:
        """(oldest held, newest); (n, n - 1) when empty."""
        return await self._threads.run(self._thing.bounds)

    async def before(self, sent_ns: int) -> Message[T]:
        """The newest message that had been sent at `sent_ns` (UTC)."""
        return await self._threads.run(self._thing.before, sent_ns)

    async def between(self, first_ns: int, last_ns: int) -> list[Message[T]]:
        """Those held of all publishers that were sent from `first_ns` to `last_ns` (UTC), in the order of sending."""
        return await self._threads.run(self._thing.between, first_ns, last_ns)

    async def staleness_s(self) -> float:
        """How much older than what its publisher has now the newest message may be, at most."""
        return await self._threads.run(self._thing.staleness_s)
