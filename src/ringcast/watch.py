"""A watch: which nodes, publishers and subscribers come and go, as one program is told.

Invariants: for each node, publisher and subscriber, `came` and `went` alternate, starting with `came`. A program that
takes every event can work out `present` from them. The queue is bounded; when it is full, things that came and went
again are left out. While the daemon is away there are no events. When it is back, its list is compared with the last
one, and the differences become events: a program that finds the restarted daemon later than the one that watches went
and came.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ringcast.client.attachment import Attachment
from ringcast.client.descriptors import Waker
from ringcast.control import requests
from ringcast.control.answers import Done
from ringcast.control.notices import Presences
from ringcast.errors import ClosedError, ForkedError, RingcastError, WouldBlock
from ringcast.model.closing import Closing
from ringcast.model.identity import Presence, PresenceKind
from ringcast.notify import Interrupted, OnError, Service

if TYPE_CHECKING:
    from ringcast.client.readiness import Readiness

KINDS: tuple[PresenceKind, ...] = ("node", "publisher", "subscriber")
MAX_WAITING = 65536


class Ledger:
    """What is there, what the application was told, and what it is still to be told. A publisher or subscriber is known
    by its incarnation, because a restarted daemon gives it another `id`; the application is told the first one."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self.skipped = 0
        self._max_waiting = max_waiting
        self._waiting: deque[Presence] = deque()
        self._present: dict[Hashable, Presence] = {}
        self._told: dict[Hashable, Presence] = {}
        self._before: dict[Hashable, Presence] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def present(self) -> list[Presence]:
        return list(self._present.values())

    def note(self, notice: Presences) -> None:
        if notice.anew:
            self._before, self._present = self._before | self._present, {}
        for row in notice.rows:
            key = _identity(row)
            if row.came and key not in self._present:
                known = self._before.pop(key, None)
                self._present[key] = known or row
                if known is None:
                    self._waiting.append(row)
            elif not row.came and key in self._present:
                self._waiting.append(_gone(self._present.pop(key)))
        self._shorten()

    def complete(self) -> None:
        """Everything that is there was noted: what was there before and is not now, went."""
        self._waiting.extend(_gone(thing) for thing in self._before.values())
        self._before = {}
        self._shorten()

    def take(self) -> Presence:
        row = self._waiting.popleft()
        if row.came:
            self._told[_identity(row)] = row
        else:
            self._told.pop(_identity(row), None)
        return row

    def _shorten(self) -> None:
        if len(self._waiting) <= self._max_waiting:
            return
        known = self._present | self._before
        went = [_gone(thing) for key, thing in self._told.items() if key not in known]
        came = [thing for key, thing in known.items() if key not in self._told]
        self.skipped += len(self._waiting) - len(went) - len(came)
        self._waiting = deque(went + came)


def _identity(thing: Presence) -> Hashable:
    return thing.kind, thing.node, thing.info and (thing.info.incarnation or thing.info)


def _gone(thing: Presence) -> Presence:
    return msgspec.structs.replace(thing, came=False)


class Watch(Closing):
    """Made by `session.watch()` or `tag.watch()`. Any number of threads may take from it, each presence once."""

    def __init__(self, attachment: Attachment, pattern: str, kinds: Sequence[PresenceKind]) -> None:
        if not kinds or not set(kinds) <= set(KINDS):
            raise ValueError(f"kinds are some of {', '.join(KINDS)}, not {', '.join(map(str, kinds)) or 'none'}")
        attachment.check()
        self.number = attachment.registry.number()
        self.failure: RingcastError | None = None
        """Why nothing more will come; None while it may."""
        self._attachment = attachment
        self._request = requests.Watch(id=0, watch=self.number, pattern=pattern, kinds=list(kinds))
        self._changed = threading.Condition()
        self._ledger = Ledger()
        self._closed = False
        self._interrupted: set[Service] = set()
        self._waker: Waker | None = None
        self._ready: Readiness | None = None
        attachment.registry.watch(self)
        self._finalizer = weakref.finalize(self, attachment.registry.unwatch, self.number)
        self._finalizer.atexit = False
        attachment.owns(self)

    @property
    def pattern(self) -> str:
        return self._request.pattern

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def present(self) -> list[Presence]:
        """What is there now, whether it was taken from the watch or not."""
        with self._changed:
            return self._ledger.present

    @property
    def skipped(self) -> int:
        """Comings and goings left out because nobody took them for very long."""
        return self._ledger.skipped

    # ---------------------------------------------------------------- taking

    def recv(self, timeout: float | None = None) -> Presence:
        """The next that came or went. Raises TimeoutError, ClosedError, ForkedError, and what ended the watch."""
        return self._recv(None, timeout)

    def recv_nowait(self) -> Presence:
        """Raises WouldBlock, and as `recv` does."""
        if (presence := self._recv_if_any()) is None:
            raise WouldBlock("nothing came or went")
        return presence

    def _recv_if_any(self) -> Presence | None:
        with self._changed:
            self._check()
            if not self._ledger:
                self._quiet()
                return None
            return self._take()

    def __iter__(self) -> Iterator[Presence]:
        """Until somebody closes the watch. Raises as `recv` does otherwise."""
        while True:
            try:
                presence = self.recv()
            except ClosedError:
                return
            yield presence

    def fileno(self) -> int:
        """A descriptor that is readable while there is something to take; never read it, and do not close it.

        Raises ClosedError, ForkedError, ResourceLimit.
        """
        with self._changed:
            self._check()
            if self._waker is None:
                self._waker = Waker()
                if self._ledger:
                    self._waker.wake()
            return self._waker.fd

    async def recv_async(self, timeout: float | None = None) -> Presence:
        """`recv` for asyncio."""
        if self._ready is None:
            from ringcast.client.readiness import Readiness  # loads asyncio, which most programs do without

            self._ready = Readiness(self.fileno(), "watch")
            weakref.finalize(self, self._ready.close).atexit = False
        return await self._ready.receive(self._recv_if_any, lambda: self.failure, timeout)

    async def __aiter__(self) -> AsyncIterator[Presence]:
        while True:
            try:
                presence = await self.recv_async()
            except ClosedError:
                return
            yield presence

    def on_change(self, callback: Callable[[Presence], object], on_error: OnError | None = None) -> WatchCallback:
        """Call `callback` for each, on a thread of its own. An exception in it is logged, counted in `failed` and given
        to `on_error(error, presence)`; the thread goes on. Raises ClosedError, ForkedError."""
        self._attachment.check()
        self._check()
        return self._attachment.employs(WatchCallback(self, callback, on_error))

    def _recv(self, service: Service | None, timeout: float | None) -> Presence:
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._ledger or self._closed or self.failure or service in self._interrupted, timeout
            ):
                raise TimeoutError(f"nothing came or went within {timeout:g} s")
            if service in self._interrupted:
                raise Interrupted
            self._check()
            return self._take()

    def _check(self) -> None:
        if self._attachment.is_forked:
            raise ForkedError("watch")
        if self._closed:
            raise ClosedError("watch")
        if self.failure is not None and not self._ledger:
            raise self.failure

    def _take(self) -> Presence:
        presence = self._ledger.take()
        if not self._ledger:
            self._quiet()
        return presence

    def _quiet(self) -> None:
        if self._waker is not None and self.failure is None:
            with contextlib.suppress(BlockingIOError):  # it is already
                self._waker.quiet()

    # ---------------------------------------------------------------- the connection's thread

    def register(self) -> None:
        """Raises what `Connection.call` does."""
        self._attachment.connection.call(self._request, Done, then=lambda _: self._complete())

    def told(self, notice: Presences) -> None:
        with self._changed:
            self._ledger.note(notice)
            self._tell()

    def fail(self, error: RingcastError) -> None:
        with self._changed:
            self.failure = error
            self._tell()

    def interrupt(self, service: Service) -> None:
        """End that service's wait."""
        with self._changed:
            self._interrupted.add(service)
            self._changed.notify_all()

    def _complete(self) -> None:
        with self._changed:
            self._ledger.complete()
            self._tell()

    def _tell(self) -> None:
        if self._waker is not None and (self._ledger or self.failure):
            self._waker.wake()
        self._changed.notify_all()

    # ---------------------------------------------------------------- the end

    def close(self) -> None:
        """Whoever waits gets ClosedError. A second call does nothing, and so does one in a forked child."""
        if self._attachment.is_forked:
            return
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        if self._ready is not None:
            self._ready.close()
        self._finalizer.detach()
        self._attachment.dismiss(self)
        self._attachment.registry.unwatch(self.number)

    def __repr__(self) -> str:
        return f"<Watch of {self.pattern!r}{' closed' if self._closed else ''}>"


class WatchCallback(Service):
    """Made by `watch.on_change`."""

    owner: Watch

    def __init__(self, watch: Watch, callback: Callable[[Presence], object], on_error: OnError | None) -> None:
        super().__init__(watch, watch, on_error)
        self._callback = callback

    def _turn(self) -> None:
        presence = self.owner._recv(self, None)
        try:
            self._callback(presence)
            self.delivered += 1
        except Exception as exc:
            self._report(exc, presence)

    def _wake(self) -> None:
        self.owner.interrupt(self)

    def _ended(self) -> None:
        pass
