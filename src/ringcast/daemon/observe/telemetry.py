"""The daemon as a publisher: the counters of its channels on a tag of its own, once a second.

It is a client of its own local manager, with a number that no connection has. It begins with the first channel: a node
that exchanges nothing with others has nothing to tell, and does nothing. Invariants: while the daemon runs it publishes
again whatever becomes of its tag or its ring, at the next second; many channels are read in slices.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable

import msgspec

from ringcast import _core
from ringcast.control.answers import Published
from ringcast.control.descriptor import own
from ringcast.control.requests import Hello, OpenTag, Publish
from ringcast.control.status import ChannelStatus
from ringcast.daemon.background import Background
from ringcast.daemon.clients.local import Local
from ringcast.daemon.effects import Send
from ringcast.daemon.observe.slices import Slices
from ringcast.daemon.rings.registrations import OWN_CLIENT
from ringcast.daemon.table.system_tags import ATTRIBUTES, channels_tag, encode, encode_channel
from ringcast.errors import RingcastError

logger = logging.getLogger("ringcast.daemon")

PERIOD_S = 1.0


class Telemetry:
    """`channels` and `dropped` give what is told, `deliver` tells clients of the ring, `changed` everybody else."""

    def __init__(
        self, local: Local, channels: Callable[[], Iterable[ChannelStatus]],
        dropped: Callable[[], dict[str, dict[str, int]]], deliver: Callable[[list[Send]], None],
        changed: Callable[[], None], background: Background,
    ) -> None:  # fmt: skip
        self._local = local
        self._channels = channels
        self._dropped = dropped
        self._background = background
        self._deliver = deliver
        self._changed = changed
        self._writer: _core.RingWriter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure = ""
        """What was said last about not publishing."""
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def start(self) -> None:
        if not self._closed:
            self._timer = self._loop.call_later(PERIOD_S, self._tick)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writer is not None:
            self._writer.close()

    def _tick(self) -> None:
        self._background.start("telemetry", self.publish(), self.start)

    async def publish(self) -> None:
        """Tell the channels that there are."""
        slices = Slices()
        channels = await slices.gather(map(encode_channel, self._channels()))
        if not self._closed:
            self._send(channels)

    def _send(self, channels: list[msgspec.Raw]) -> None:
        try:
            if self._writer is not None and not self._local.is_published(self._writer.incarnation):
                self._writer.close()  # its tag is gone, and the ring with it
                self._writer = None
            if self._writer is None and channels:
                self._writer = self._publisher()
                self._failure = ""
            if self._writer is not None:
                self._writer.send(encode(self._local.table.node, time.time_ns(), channels, self._dropped()))
        except RingcastError as exc:
            if str(exc) != self._failure:
                self._failure = str(exc)
                logger.warning("channels are not published, trying again every second: %s", exc)

    def _publisher(self) -> _core.RingWriter:
        """Raises RingcastError: NoSpace above all."""
        name = channels_tag(self._local.table.node)
        if OWN_CLIENT not in self._local.clients:
            self._local.join(OWN_CLIENT, os.getpid(), getpass.getuser(), Hello(id=0, program="ringcast daemon"), [])
        self._local.handle(OWN_CLIENT, OpenTag(id=0, name=name), [])
        writer = _core.RingWriter(depth=ATTRIBUTES.depth, capacity_bytes=ATTRIBUTES.capacity_bytes, max_wait_s=0)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            writer.attach_fanout(ours.fileno())
            fds = own(map(os.dup, (writer.ring_fd, writer.bell_fd, theirs.fileno())))
        request = Publish(
            id=0, tag=name, incarnation=writer.incarnation, depth=writer.depth, capacity_bytes=writer.capacity_bytes
        )
        answers = self._local.handle(OWN_CLIENT, request, fds)
        if not any(isinstance(answer.message, Published) for answer in answers):
            raise RingcastError(f"{name} could not be published on: {[answer.message for answer in answers]}")
        self._deliver(answers)
        self._changed()
        return writer
