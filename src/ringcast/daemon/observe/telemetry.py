"""The daemon as a publisher: the counters of its channels on a tag of its own, once a second.

It begins with the first channel: a node that exchanges nothing with others has nothing to tell, and does nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ringcast.control.status import ChannelStatus
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.own_publisher import OwnPublisher
from ringcast.daemon.table.system_tags import ATTRIBUTES, channels_tag, encode
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PERIOD_S = 1.0


class Telemetry:
    """`status` gives the channels, `deliver` tells clients of the ring, `changed` everybody else."""

    def __init__(
        self, local: Local, status: Callable[[], tuple[list[ChannelStatus], dict[str, dict[str, int]]]],
        deliver: Callable[[list[Send]], None], changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._node = local.table.node
        self._status = status
        self._publisher = OwnPublisher(local, channels_tag(self._node), ATTRIBUTES, deliver, changed)
        self._timer: asyncio.TimerHandle | None = None
        self._failure = ""
        """What was said last about not publishing."""
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._timer = self._loop.call_later(PERIOD_S, self._tick)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._publisher.close()

    def _tick(self) -> None:
        try:
            rows, dropped = self._status()
            if rows or self._publisher.begun:
                self._publisher.send(encode(self._node, time.time_ns(), rows, dropped))
                self._failure = ""
        except RingcastError as exc:
            if str(exc) != self._failure:
                self._failure = str(exc)
                logger.warning("channels are not published, trying again every second: %s", exc)
        finally:
            self.start()
