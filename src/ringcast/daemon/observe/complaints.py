"""What a daemon logs because of others: each kind about each peer a few times a minute, then how many more there were.

Anybody who can reach a daemon can make it log, and logs fill disks. One place for all such lines. Call it from the
event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging

from ringcast.daemon.alarm import Alarm
from ringcast.daemon.observe.rate_limit import RateLimit


class Complaints:
    """Writes to `logger`; lines are told apart by their text before it is filled in, and by `about`."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._limit = RateLimit()
        self._alarm = Alarm(self._tick)

    @property
    def suppressed(self) -> int:
        return self._limit.suppressed

    def warning(self, about: str, text: str, *args: object) -> None:
        self._say(logging.WARNING, about, text, args)

    def error(self, about: str, text: str, *args: object) -> None:
        self._say(logging.ERROR, about, text, args)

    def exception(self, about: str, text: str, *args: object) -> None:
        self._say(logging.ERROR, about, text, args, exc_info=True)

    def close(self) -> None:
        self._alarm.close()

    def _say(
        self, level: int, about: str, text: str, args: tuple[object, ...], *, exc_info: bool = False
    ) -> None:  # fmt: skip
        now_ns = self._now_ns()
        self._sum_up(now_ns)
        if self._limit.admits((text, about), now_ns, (level, printable(text % args))):
            self._logger.log(level, "%s", printable(text % args), exc_info=exc_info)
        self._tick_later(now_ns)

    def _tick(self) -> None:
        self._sum_up(self._now_ns())
        self._tick_later(self._now_ns())

    def _sum_up(self, now_ns: int) -> None:
        for count, (level, text) in self._limit.take_sums(now_ns):
            self._logger.log(level, "... and %d more in the last minute; the last one: %s", count, text)

    def _tick_later(self, now_ns: int) -> None:
        if (due_ns := self._limit.due_ns()) is not None:
            # A millisecond late, or rounding could have it wake before its time again and again.
            self._alarm.within(max(0, due_ns - now_ns) / 1e9 + 1e-3)

    def _now_ns(self) -> int:
        return int(asyncio.get_running_loop().time() * 1e9)


def printable(text: str) -> str:
    """Text from others must not break log lines nor control the terminal that shows them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
