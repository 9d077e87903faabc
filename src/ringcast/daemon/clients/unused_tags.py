"""Tags that nobody has used for long end. The rule is in `ringcast.daemon.table.leases`; this has the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ringcast.daemon.alarm import Alarm
from ringcast.daemon.table.leases import Leases

logger = logging.getLogger("ringcast.daemon")


class UnusedTags:
    """`unused` names the tags that nobody uses and that may end; `expire` ends some."""

    def __init__(self, lease_s: float, unused: Callable[[], set[str]], expire: Callable[[list[str]], None]) -> None:
        self._leases = Leases(lease_s)
        self._unused = unused
        self._expire = expire
        self._alarm = Alarm(self._look)

    def look_later(self) -> None:
        if self._leases.period_s is not None:
            self._alarm.within(self._leases.period_s)

    def close(self) -> None:
        self._alarm.close()

    def _look(self) -> None:
        expired = self._leases.look(self._unused(), asyncio.get_running_loop().time())
        if expired:
            logger.info("%d tag(s) that nobody used have ended: %.200r", len(expired), expired)
            self._expire(expired)
        self.look_later()
