"""What a gateway refused, told to the daemon for its audit, without holding anybody up.

Invariants: every refusal is counted; those alike that come while others are told become one report with their number; a
flood of refusals costs the daemon a few requests a second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from ringcast.aio.threads import Threads
from ringcast.errors import RingcastError
from ringcast.session import Session

logger = logging.getLogger("ringcast.gateway")

MOST_KINDS = 64
"""That wait to be told; of more than so many, only the action is told."""
PAUSE_S = 0.05
CLOSE_S = 2.0
OTHERS = "many"


class _Kind(NamedTuple):
    who: str
    action: str
    what: str
    reason: str


class Refusals:
    def __init__(self, session: Session, threads: Threads) -> None:
        self.count = 0
        self._session = session
        self._threads = threads
        self._waiting: dict[_Kind, int] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, who: str, action: str, what: str, reason: str) -> None:
        self.count += 1
        kind = _Kind(who, action, what, reason)
        if kind not in self._waiting and len(self._waiting) >= MOST_KINDS:
            kind = _Kind(OTHERS, action, "", "too many kinds of refusals to tell each")
        self._waiting[kind] = self._waiting.get(kind, 0) + 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        """Tells what waits, if that does not take long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSE_S)
            self._task.cancel()

    async def _tell(self) -> None:
        while self._waiting:
            kind = next(iter(self._waiting))
            count = self._waiting.pop(kind)
            try:
                await self._threads.run(self._session.report_refusal, *kind, count=count)
            except RingcastError as exc:
                logger.warning("%d refusal(s) of %s are not in the daemon's audit: %s", count, kind.who, exc)
            await asyncio.sleep(PAUSE_S)
