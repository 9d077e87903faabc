"""Tells an application that its daemon went away and came back, on a thread of its own.

The connection's thread only appends to a queue, so that a slow callback keeps nothing waiting. Invariant: `lost` and
`back` alternate, whatever was left out; the queue is bounded, and what is left out is counted in `skipped`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ringcast.client.connection import Connection
from ringcast.model.connection import ConnectionChange
from ringcast.notify import Interrupted, OnError, Service

MAX_WAITING = 64


class _Source:
    pattern = "connection"
    failure = None


class ConnectionCallback(Service):
    """Made by `session.on_connection_change`."""

    def __init__(
        self, connection: Connection, callback: Callable[[ConnectionChange], object], on_error: OnError | None
    ) -> None:
        super().__init__(connection, _Source(), on_error)
        self._connection = connection
        self._callback = callback
        self._changed = threading.Condition()
        self._waiting: deque[ConnectionChange] = deque()
        connection.listen(self.told)

    def told(self, change: ConnectionChange) -> None:
        """Does not wait. Called by the connection."""
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:  # a pair: what follows still fits what the application knows
                self._waiting.popleft()
                self._waiting.popleft()
                self.skipped += 2
            self._waiting.append(change)
            self._changed.notify_all()

    def _turn(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
            if not self._waiting:
                raise Interrupted
            change = self._waiting.popleft()
        try:
            self._callback(change)
            self.delivered += 1
        except Exception as exc:
            self._report(exc, change)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _ended(self) -> None:
        self._connection.unlisten(self.told)
