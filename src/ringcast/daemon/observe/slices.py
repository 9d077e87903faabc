"""Long reads in the daemon's event loop, cut into slices. Between two slices other tasks run.

So rows of different slices are taken at slightly different times.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

SLICE_S = 0.0005
"""How long rows are read without a break."""

_T = TypeVar("_T")


class Slices:
    """`clock` is in seconds. The loop is held from its making on."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.longest_s = 0.0
        """How long others waited for their turn at most."""
        self._clock = clock
        self._begin = clock()

    async def rest(self) -> None:
        self.longest_s = max(self.longest_s, self._clock() - self._begin)
        await asyncio.sleep(0)
        self._begin = self._clock()

    async def gather(self, rows: Iterable[_T]) -> list[_T]:
        found: list[_T] = []
        for row in rows:
            found.append(row)
            if self._clock() - self._begin > SLICE_S:
                await self.rest()
        await self.rest()
        return found
