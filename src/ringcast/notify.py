"""Notification services: callback, event, queue, blackboard (LabMap, section III.C).

Each has a thread of its own, never one that does input or output for others, so a slow callback delays nobody but
itself. A callback and a queue consume the subscriber, one of them at a time; an event and blackboards leave its
cursors where they are. Nothing that application code raises ends a thread.

The blackboard is the newest slot of the rings, looked at by whoever wants to: it needs no thread at all.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Protocol

from ringcast.errors import BusyError, ClosedError, ForkedError, WouldBlock
from ringcast.message import Message, T_co
from ringcast.model.closing import Closing

if TYPE_CHECKING:
    from ringcast.client.rings.subscribed import SubscribedRings

logger = logging.getLogger("ringcast")

OnError = Callable[[BaseException, object], object]
"""Is given the error and what was being delivered, a message or a presence; None if nothing was."""

JOIN_TIMEOUT_S = 5.0
_BATCH = 256
_MOST_BATCHES = 64  # a publisher faster than this thread must not keep it from ever calling back
_BUSY_RETRY_S = 0.05


class Interrupted(Exception):
    """Ends a service's receive; never seen by an application."""


class Source(Protocol):
    """What a service needs to know of where its messages come from."""

    @property
    def pattern(self) -> str: ...
    @property
    def failure(self) -> BaseException | None: ...


class Service(Closing, ABC):
    """A thread at work for one subscriber, or one watch. `delivered`, `skipped` and `failed` count messages."""

    def __init__(self, owner: object, registration: Source, on_error: OnError | None) -> None:
        self.delivered = 0
        self.skipped = 0
        self.failed = 0
        self.owner = owner
        """Whose closing ends the service: the rings of a subscriber, or a watch."""
        self._source = registration
        self._on_error = on_error
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"ringcast-{type(self).__name__.lower()}-{registration.pattern}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """End the service and its thread; the subscriber stays open. May be called from a callback."""
        self._stopping.set()
        self._wake()
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join(JOIN_TIMEOUT_S)
            if self._thread.is_alive():
                logger.warning("%s is still busy in the application's code", self._thread.name)

    @abstractmethod
    def _wake(self) -> None:
        """Get the thread out of whatever it waits in."""

    @abstractmethod
    def _turn(self) -> None:
        """Receive once and do what is to be done."""

    def _begun(self) -> None:
        """The thread's first act."""

    def _left(self) -> None:
        """It receives nothing any more."""

    @abstractmethod
    def _ended(self) -> None:
        """The thread's last act."""

    def _run(self) -> None:
        self._begun()
        try:
            while not self._stopping.is_set():
                try:
                    self._turn()
                except (Interrupted, ClosedError, ForkedError):
                    return
                except BusyError as exc:  # somebody receives beside us: say so, and let him finish
                    self._report(exc, None)
                    self._stopping.wait(_BUSY_RETRY_S)
                except Exception as exc:
                    self._report(exc, None)
                    if exc is self._source.failure:
                        return
        finally:
            self._left()
            self._ended()

    def _report(self, error: BaseException, message: object) -> None:
        self.failed += 1
        logger.error("%s: %s", self._thread.name, error, exc_info=error)
        if self._on_error is not None:
            try:
                self._on_error(error, message)
            except Exception:
                logger.exception("%s: on_error itself failed", self._thread.name)


class _Reading(Service):
    """A service that consumes a subscriber's rings or waits beside them."""

    def __init__(self, rings: SubscribedRings, on_error: OnError | None, sched: str | None = None) -> None:
        super().__init__(rings, rings.registration, on_error)
        self._rings = rings
        self._registration = rings.registration
        self._sched = sched

    def _begun(self) -> None:
        self._registration.threads.take(self._sched)

    def _left(self) -> None:
        self._registration.threads.release()


class Callback(_Reading, Generic[T_co]):
    """Made by `sub.on_message`."""

    def __init__(
        self,
        rings: SubscribedRings,
        callback: Callable[[Message[T_co]], object],
        blocking: bool,
        on_error: OnError | None,
        sched: str | None = None,
    ) -> None:
        super().__init__(rings, on_error, sched)
        self._callback = callback
        self._blocking = blocking

    def _turn(self) -> None:
        message = self._rings.recv() if self._blocking else self._newest()
        try:
            self._callback(message)
            self.delivered += 1
        except Exception as exc:
            self._report(exc, message)

    def _newest(self) -> Message[T_co]:
        batch = self._rings.recv_many(_BATCH)
        for _ in range(_MOST_BATCHES):
            self.skipped += len(batch) - 1
            if len(batch) < _BATCH:
                break
            try:
                more = self._rings.recv_many(_BATCH, timeout=0)
            except TimeoutError:
                break
            self.skipped += 1
            batch = more
        return batch[-1]

    def _wake(self) -> None:
        self._registration.interrupt(self, Interrupted())

    def _ended(self) -> None:
        self._registration.consumer_left(self)


class MessageQueue(_Reading, Generic[T_co]):
    """Made by `sub.queue`. Any number of threads may take from it."""

    def __init__(
        self, rings: SubscribedRings, maxsize: int, blocking: bool, on_error: OnError | None, sched: str | None = None
    ) -> None:
        if maxsize < 1:
            raise ValueError(f"maxsize is at least 1, not {maxsize}; every queue here is bounded")
        super().__init__(rings, on_error, sched)
        self._maxsize = maxsize
        self._blocking = blocking
        self._held: deque[Message[T_co]] = deque()
        self._changed = threading.Condition()
        self._over = False

    def get(self, timeout: float | None = None) -> Message[T_co]:
        """The oldest message held. Raises TimeoutError; once the queue has ended and is empty, ClosedError or what
        ended it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._held or self._over, timeout):
                raise TimeoutError(f"no message within {timeout:g} s")
            return self._take()

    def get_nowait(self) -> Message[T_co]:
        """Raises WouldBlock, and as `get` does."""
        with self._changed:
            if not self._held and not self._over:
                raise WouldBlock
            return self._take()

    def __len__(self) -> int:
        return len(self._held)

    def _take(self) -> Message[T_co]:
        if not self._held:
            raise self._registration.failure or ClosedError("queue")
        message = self._held.popleft()
        self._changed.notify_all()
        return message

    def _turn(self) -> None:
        message = self._rings.recv()
        with self._changed:
            if self._blocking:
                self._changed.wait_for(lambda: len(self._held) < self._maxsize or self._stopping.is_set())
            elif len(self._held) >= self._maxsize:
                self._held.popleft()
                self.skipped += 1
            self._held.append(message)
            self.delivered += 1
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
        self._registration.interrupt(self, Interrupted())

    def _ended(self) -> None:
        self._registration.consumer_left(self)
        with self._changed:
            self._over = True
            self._changed.notify_all()


class ArrivalEvent(_Reading):
    """Made by `sub.event`: set on arrival, cleared by you. Like threading.Event, it does not count.

    Clear it first and then receive until WouldBlock: an arrival in between sets it again. It begins set when there may
    be something to receive already.
    """

    def __init__(self, rings: SubscribedRings, watcher: SubscribedRings) -> None:
        super().__init__(watcher, None)
        self.owner = rings
        self._watcher = watcher
        self._event = threading.Event()
        if rings.newest() is not None:
            self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def clear(self) -> None:
        self._event.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """True once it is set; False after `timeout`. It is set for good when the subscriber is closed."""
        return self._event.wait(timeout)

    def _turn(self) -> None:
        self.delivered += len(self._watcher.recv_many(_BATCH))
        self._event.set()

    def _wake(self) -> None:
        self._watcher.close()

    def _ended(self) -> None:
        self._event.set()


class Blackboard(Generic[T_co]):
    """Made by `sub.blackboard`: the newest message, for any number of threads at once."""

    def __init__(self, rings: SubscribedRings) -> None:
        self._rings = rings

    @property
    def latest(self) -> Message[T_co] | None:
        """Raises ClosedError, ForkedError, DecodeError."""
        return self._rings.newest()

    def wait_newer(self, than: Message[object] | None = None, timeout: float | None = None) -> Message[T_co]:
        """The newest message, as soon as it was sent after `than`; without `than`, as soon as there is one.

        So `msg = board.wait_newer(msg)` in a loop, beginning with None, sees what is there and then what is new.
        Raises TimeoutError, ClosedError, ForkedError, DecodeError, TagDestroyed.
        """
        after_ns = than.sent_ns if than is not None else 0
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                return self._rings.wait_newer(after_ns, left)
            except Interrupted:  # meant for a service on the same subscriber that is being closed
                time.sleep(0)
