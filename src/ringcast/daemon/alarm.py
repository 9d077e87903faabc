"""Work that is to be done at a time of the event loop: the one idiom of a timer that is set, rings and is set again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls `work` once, at the earliest of the times that were asked for since it last did. Never after `close`."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def waiting(self) -> bool:
        return self._timer is not None

    def within(self, delay_s: float) -> None:
        """Have it done so many seconds from now, or earlier if that was asked for before."""
        self.by(asyncio.get_running_loop().time() + delay_s)

    def by(self, at_s: float) -> None:
        """As `within`, by the loop's clock."""
        if self._closed or (self._timer is not None and self._timer.when() <= at_s):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at_s, self._ring)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        self._work()
