"""Streams of other nodes that this process receives itself: those of which it is its node's only reader.

The daemon gives the socket, this process makes the mirror and shows it to the daemon. The thread that waits for a
message receives it (`native/path/receiving/delivery.hpp`). Invariant: a mirror is written until the daemon says
otherwise, or until the daemon is another one, and never after `close`.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from ringcast import _core
from ringcast.client.connection import Connection
from ringcast.codec.prepared import decoder_of
from ringcast.control.link import Received
from ringcast.control.notices import IntakeWanted
from ringcast.control.requests import IntakeDown, IntakeUp
from ringcast.errors import BadMessage, RingcastError

logger = logging.getLogger("ringcast")


class Intakes:
    """Those of one subscription."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, tuple[int, _core.Delivery]] = {}  # ring and what fills it, by the daemon's number
        self._closed = False

    def wanted(self, notice: IntakeWanted, received: Received[Any], connection: Connection) -> None:
        """Make the mirror and tell the daemon, or tell it why not. On the connection's thread."""
        try:
            if received.limit is not None:
                raise received.limit
            expected = 2 if notice.before is None else 3
            if len(received.fds) != expected:
                raise BadMessage(f"an intake came with {len(received.fds)} descriptors, not {expected}")
            self._begin(notice, received.fds, connection)
        except (RingcastError, OSError, ValueError, msgspec.MsgspecError) as exc:
            logger.debug("intake %x is left to the daemon: %s", notice.intake, exc)
            connection.post(IntakeDown(id=0, intake=notice.intake, reason=str(exc)))

    def _begin(self, notice: IntakeWanted, fds: Sequence[int], connection: Connection) -> None:
        # Not above: a program that receives from its own node alone needs none of it.
        from ringcast.transport.interface import Channel, MirrorBefore
        from ringcast.transport.stack_receiving import open_mirror

        channel = decoder_of(Channel).decode(notice.channel)
        before = None if notice.before is None else MirrorBefore(fds[2], *notice.before)
        delivery = _core.Delivery(fds[0], attended=True)
        with self._lock:
            if self._closed:
                raise BadMessage("the subscription is closed")
            try:
                mirror = open_mirror(delivery, channel, shown=True, before=before)
                mirror.follow(_core.TimeBase(fds[1]))
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with ours, theirs:
                    delivery.attach_fanout(channel.seat.key if channel.seat is not None else 0, ours.fileno())
                    up = IntakeUp(id=0, intake=notice.intake, incarnation=mirror.incarnation)
                    connection.post(up, (mirror.ring_fd, mirror.bell_fd, theirs.fileno(), mirror.page_fd))
            except BaseException:
                delivery.close()
                raise
            self._open[notice.intake] = (mirror.incarnation, delivery)

    def filling(self, ring: int) -> _core.Delivery | None:
        """What fills that ring, if this process does."""
        return next((delivery for known, delivery in list(self._open.values()) if known == ring), None)

    def unwanted(self, number: int) -> None:
        with self._lock:
            _, delivery = self._open.pop(number, (0, None))
        if delivery is not None:
            delivery.close()

    def forget(self) -> None:
        """Another daemon: it will say what it wants."""
        for number in list(self._open):
            self.unwanted(number)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.forget()
