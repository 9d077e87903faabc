"""Work that many ask for in a short time: it is done once for all of them, and for at most half of the time.

Making things as they should be takes the longer the more there are. Done for each of a thousand changes, it would keep
the daemon's loop from everything else; done so, everybody else has as much of the loop as it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Coalesced:
    """`work` sees everything that happened before it was asked for. Call it from the event loop's thread."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._timer: asyncio.TimerHandle | None = None
        self._not_before = 0.0

    def soon(self) -> None:
        """In the loop's next round, or after a rest as long as it took last."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._not_before, self._run)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        begin = loop.time()
        try:
            self._work()
        finally:
            end = loop.time()
            self._not_before = end + (end - begin)
