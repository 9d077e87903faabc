"""Things of asyncio that are closed by `await close()` or by an `async with` block."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Protocol, Self

from typing_extensions import TypeVar

from ringcast.aio.threads import Threads


class Closable(Protocol):
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...


_C_co = TypeVar("_C_co", bound=Closable, covariant=True)


class AsyncClosing(Generic[_C_co]):
    """Closes `thing` on a thread: the daemon is told, and that may take a moment."""

    def __init__(self, thing: _C_co, threads: Threads) -> None:
        self._thing = thing
        self._threads = threads

    @property
    def blocking(self) -> _C_co:
        """The thing itself, for other threads."""
        return self._thing

    @property
    def closed(self) -> bool:
        return self._thing.closed

    async def close(self) -> None:
        """A second call does nothing."""
        if not self._thing.closed:
            await self._threads.run(self._thing.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<asyncio {self._thing!r}>"
