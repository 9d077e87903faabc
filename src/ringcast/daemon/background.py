"""Background tasks of the daemon: one supervised set instead of a task and a callback here and there.

Invariants: a task is held until it ends, so the loop cannot lose it; one that fails by a mistake of ours is logged
with its name and counted, and costs nobody else anything; `close` cancels what still runs and refuses more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

logger = logging.getLogger("ringcast.daemon")

_T = TypeVar("_T")


class Background:
    """`failures` counts tasks that raised. Call everything from the event loop's thread."""

    def __init__(self) -> None:
        self.failures = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def start(
        self, name: str, work: Coroutine[Any, Any, _T], on_done: Callable[[], object] | None = None
    ) -> asyncio.Task[_T]:
        """Run `work`; `on_done` is called when it ended, however it did. After `close` it is cancelled at once."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._ended(task, on_done))
        if self._closed:
            task.cancel()
        return task

    def close(self) -> None:
        self._closed = True
        for task in self._tasks:
            task.cancel()

    def _ended(self, task: asyncio.Task[Any], on_done: Callable[[], object] | None) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures += 1
            logger.error("background task %s failed", task.get_name(), exc_info=error)
        if on_done is not None:
            on_done()
