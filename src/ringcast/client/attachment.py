"""A session's attachment to its daemon, with everything that hangs on it: what the public objects share.

`Session` is what an application sees of it. Invariants: closing ends, in this order, the notification threads, the
subscribers, publishers and histories, the bridge, and the connection, so that each finds alive what it needs; in a
forked child nothing is touched that is the parent's.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import Protocol, TypeVar, runtime_checkable

from ringcast import _core
from ringcast.client import lifetime
from ringcast.client.connection import Connection
from ringcast.client.registry import Registry
from ringcast.errors import RingcastError
from ringcast.notify import Service

logger = logging.getLogger("ringcast")

_S = TypeVar("_S", bound=Service)


class Closable(Protocol):
    def close(self) -> None: ...


@runtime_checkable
class Drains(Protocol):
    @property
    def closed(self) -> bool: ...
    def drain(self, timeout: float | None) -> None: ...


class Attachment:
    """Raises DaemonUnavailable when nobody answers at `path`, ResourceLimit."""

    def __init__(self, path: str, program: str) -> None:
        self.counters = _core.CounterPage()
        self.registry = Registry()
        self.connection = Connection(path, self.registry, program=program, fds=(self.counters.fd,))
        self.registry.connection = self.connection
        self.is_forked = False
        self._lock = threading.Lock()
        self._closing = False
        self._owned: weakref.WeakSet[Closable] = weakref.WeakSet()
        self._services: set[Service] = set()
        self._bridge: _core.Bridge | None = None
        lifetime.remember(self)

    def check(self) -> None:
        """Raises ForkedError, ClosedError."""
        self.connection.check()

    @property
    def closed(self) -> bool:
        return self._closing

    def owns(self, thing: Closable) -> None:
        """Close it with the session, unless it is gone by then."""
        with self._lock:
            closing = self._closing
            if not closing:
                self._owned.add(thing)
        if closing:
            thing.close()

    def employs(self, service: _S) -> _S:
        """Start a service, which the session keeps alive until it or its subscriber is closed."""
        with self._lock:
            closing = self._closing
            if not closing:
                self._services.add(service)
        if closing:
            service.close()
        else:
            service.start()
        return service

    def dismiss(self, owner: object) -> None:
        """End the services of a subscriber or a watch."""
        with self._lock:
            found = [service for service in self._services if service.owner is owner]
            self._services.difference_update(found)
        for service in found:
            service.close()

    def drain(self, timeout: float | None) -> None:
        """Drain every publisher. Raises TimeoutError, ClosedError, ForkedError, TagDestroyed."""
        self.check()
        with self._lock:
            owned = [thing for thing in self._owned if isinstance(thing, Drains)]
        deadline = None if timeout is None else time.monotonic() + timeout
        for publisher in owned:
            if not publisher.closed:
                publisher.drain(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def bridge(self) -> _core.Bridge:
        """The native thread that writes eventfds, started when the first is asked for."""
        with self._lock:
            if self._bridge is None:
                self._bridge = _core.Bridge()
            return self._bridge

    def close(self) -> None:
        if self.is_forked:
            return
        with self._lock:
            if self._closing:
                return
            self._closing = True
            services, self._services = self._services, set()
            owned = list(self._owned)
        for thing in [*services, *owned]:
            try:
                thing.close()
            except RingcastError as exc:
                logger.warning("%r was not closed cleanly: %s", thing, exc)
        if self._bridge is not None:
            self._bridge.close()
        self.connection.close()
        lifetime.forget(self)

    def forked(self) -> None:
        """In the child after a fork. Takes no lock."""
        self.is_forked = True
        self.connection.forked()
