"""Announcements that had no room in a publisher's fan-out socket are sent when there is some.

Invariant: nothing is left unsent while its publisher is here; a publisher reads its socket only when it sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ringcast.daemon.rings.fanout import FanOut, Flushed

RETRY_S = 0.05


class Flushing:
    """`retry` sends what a fan-out has left."""

    def __init__(self, retry: Callable[[FanOut], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._retry = retry

    def watch(self, fanout: FanOut, outcome: Flushed) -> None:
        if fanout.unwatch is not None:
            fanout.unwatch()
        if outcome is Flushed.FULL:
            self._loop.add_writer(fanout.fileno(), self._again, fanout)
            # By number: the descriptor may be closed by then.
            fanout.unwatch = partial(self._unwatch, fanout.fileno())
        else:
            fanout.unwatch = self._loop.call_later(RETRY_S, self._again, fanout).cancel

    def _unwatch(self, fd: int) -> None:
        self._loop.remove_writer(fd)

    def _again(self, fanout: FanOut) -> None:
        if fanout.unwatch is not None:
            fanout.unwatch()
            fanout.unwatch = None
        self._retry(fanout)
