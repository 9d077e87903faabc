"""The kernel tells when somebody shapes an interface of this node, or stops: a stream that fills its line must not wait
for the next look.

What changed is not read here (`queue_rates` asks for it): there may be many notices at once, and the kernel drops some
when nobody reads them. Without such notices, rates are seen when they are asked for.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger("ringcast.daemon")

_NETLINK_ROUTE, _QUEUES = 0, 1 << 3
"""The group of notices about queues and their classes: RTMGRP_TC of linux/rtnetlink.h."""
_NOTICE_BYTES = 1 << 16


class QueueChanges:
    """Calls `told` in the running loop, one after the other, once for all notices that came together."""

    def __init__(self, *told: Callable[[], None]) -> None:
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None

    def start(self) -> None:
        try:
            self._socket = _opened()
        except OSError as exc:
            logger.debug("changes of queues are not told here: %s", exc)
            return
        self._loop.add_reader(self._socket.fileno(), self._read, self._socket)

    def close(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _read(self, notices: socket.socket) -> None:
        # Until there is none, or there were more than the kernel keeps: something did change.
        with suppress(OSError):
            while True:
                notices.recv(_NOTICE_BYTES)
        for tell in self._told:
            tell()


def _opened() -> socket.socket:
    """Raises OSError."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, _NETLINK_ROUTE)
    try:
        made.bind((0, _QUEUES))
    except OSError:
        made.close()
        raise
    return made
