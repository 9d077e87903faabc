"""The daemon as a publisher: the counters of its channels and what they meet, on a tag of its own, once a second.

It begins with the first channel: a node that exchanges nothing with others has nothing to tell, and does nothing.
Many channels are read in slices.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from ringcast.control.status import ChannelStatus
from ringcast.daemon.alarm import Alarm
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.own_publisher import OwnPublisher
from ringcast.daemon.observe.slices import Slices
from ringcast.daemon.table.system_tags import ATTRIBUTES, channels_tag, encode, encode_channel
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PERIOD_S = 1.0


class Telemetry:
    """`channels` and `dropped` give what is told, after `begin`; `deliver` tells clients of the ring, `changed` all
    others."""

    def __init__(
        self, local: Local, channels: Callable[[], Iterable[ChannelStatus]],
        dropped: Callable[[], dict[str, dict[str, int]]], deliver: Callable[[list[Send]], None],
        changed: Callable[[], None], background: Background, begin: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self._node = local.table.node
        self._channels = channels
        self._dropped = dropped
        self._background = background
        self._begin = begin
        self._publisher = OwnPublisher(local, channels_tag(self._node), ATTRIBUTES, deliver, changed)
        self._alarm = Alarm(self._tick)
        self._failure = ""
        """What was said last about not publishing."""
        self._closed = False

    def start(self) -> None:
        self._alarm.within(PERIOD_S)

    def close(self) -> None:
        self._closed = True
        self._alarm.close()
        self._publisher.close()

    def _tick(self) -> None:
        self._background.start("telemetry", self.publish(), self.start)

    async def publish(self) -> None:
        """Tell the channels that there are."""
        if self._begin is not None:
            await self._begin()
        slices = Slices()
        channels = await slices.gather(map(encode_channel, self._channels()))
        if not self._closed:
            self._send(channels)

    def _send(self, channels: list[msgspec.Raw]) -> None:
        try:
            if channels or self._publisher.begun:
                self._publisher.send(encode(self._node, time.time_ns(), channels, self._dropped()))
                self._failure = ""
        except RingcastError as exc:
            if str(exc) != self._failure:
                self._failure = str(exc)
                logger.warning("channels are not published, trying again every second: %s", exc)
