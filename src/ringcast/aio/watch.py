"""A watch for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ringcast.aio.closing import AsyncClosing
from ringcast.model.identity import Presence
from ringcast.watch import Watch


class AsyncWatch(AsyncClosing[Watch]):
    """Made by `await session.watch()` or `await tag.watch()`."""

    @property
    def present(self) -> list[Presence]:
        """What is there now, whether it was taken from the watch or not."""
        return self._thing.present

    @property
    def skipped(self) -> int:
        """Comings and goings left out because nobody took them for very long."""
        return self._thing.skipped

    async def recv(self, timeout: float | None = None) -> Presence:
        """The next that came or went. Raises as `Watch.recv` does; BusyError when another task waits."""
        return await self._thing.recv_async(timeout)

    def recv_nowait(self) -> Presence:
        """Raises WouldBlock, and as `Watch.recv_nowait` does."""
        return self._thing.recv_nowait()

    def __aiter__(self) -> AsyncIterator[Presence]:
        """Until somebody closes the watch. Raises as `recv` does otherwise."""
        return self._thing.__aiter__()
