"""A session's threads for calls that wait. They are its own, because the loop's are the application's to keep busy.

Invariant: what a call makes is closed when nobody takes it, because the task that asked was cancelled meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

from ringcast.model.closing import Closing, HasClose

MOST_THREADS = 16

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Threads:
    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="ringcast-asyncio")

    async def run(self, call: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What `call` returns. Raises what it raises. A task that is cancelled does not end the call."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, functools.partial(call, *args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(self._untaken)
            raise

    def _untaken(self, future: asyncio.Future[Any]) -> None:
        if future.cancelled() or future.exception() is not None:
            return
        made = future.result()
        if isinstance(made, Closing):
            with contextlib.suppress(RuntimeError):  # the session is closed, and what it gave out with it
                self._pool.submit(cast(HasClose, made).close)

    def end(self) -> None:
        """Threads end with the calls that are under way."""
        self._pool.shutdown(wait=False)
