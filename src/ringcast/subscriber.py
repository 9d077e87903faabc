"""A subscriber: cursors over the rings that match a pattern, and the right to be shown them.

`recv`, `recv_nowait`, `recv_many` are the native methods themselves. A subscriber belongs to one thread or task at a
time; more of them share the rings, not the cursor. How rings come and go is in `ringcast.client.ring_following`.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Literal

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Decoders, Undecoded
from ringcast.client.ring_following import RingFollowing, Scaling, Start, first_message
from ringcast.errors import ClosedError, ResourceLimit
from ringcast.measure.receiving import SubscriberStats, summarise
from ringcast.message import Message
from ringcast.model.closing import Closing
from ringcast.model.place import check_place
from ringcast.model.tag import is_pattern
from ringcast.notify import ArrivalEvent, Blackboard, Callback, MessageQueue, OnError

if TYPE_CHECKING:
    from ringcast.client.readiness import Readiness
    from ringcast.tag import Tag


class Subscriber(_core.RingReader, Closing):
    """Made by `tag.subscribe()` or `session.subscribe(pattern)`.

    `recv(timeout=None, copy=True)` returns the next Message. Raises TimeoutError, ClosedError, ForkedError, BusyError
    (another thread receives on it), DecodeError and CorruptRing (concern one message or ring; receive again to go on),
    TagDestroyed, QosMismatch and ResourceLimit (a ring that appeared could not be read as asked).

    A message's `lost` is how many messages of its publisher, due to this subscription, are missing before it. `lost` of
    the subscriber is the total, with those that a publisher sent last, once it has left and they can come no more.
    """

    def __init__(
        self,
        attachment: Attachment,
        pattern: str,
        decoders: Decoders,
        *,
        start: Start = "new",
        reliable: bool = False,
        busy_poll: bool = False,
        role: Literal["subscriber", "history"] = "subscriber",
        scaling: Scaling = Scaling(),
        tag: Tag | None = None,
    ) -> None:
        first_message(start)
        scaling.check()
        if reliable and not scaling.ordered:
            raise ValueError("reliable=True delivers in order: leave ordered=False out, or reliable=True")
        attachment.check()
        try:
            slot = attachment.counters.take()
        except ResourceLimit:  # more subscribers than the page has room for: these count for themselves only
            slot = None
        super().__init__(reliable=reliable, busy_poll=busy_poll, counters=slot)
        self._attachment = attachment
        self._tag = tag  # kept open: a restarted daemon is to make it as it was
        self._ready: Readiness | None = None
        self._registration = RingFollowing(
            attachment.connection, attachment.registry.number(), pattern, self, start=start, decoders=decoders,
            reliable=reliable, counter_index=-1 if slot is None else slot.index, role=role, scaling=scaling,
        )  # fmt: skip
        if is_pattern(pattern):
            self._registration.mailbox_fd = self.use_mailbox()
        try:
            attachment.registry.subscribe(self._registration)
        except BaseException:
            self._registration.close(super().close)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self._registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    @property
    def pattern(self) -> str:
        """What was subscribed to: a tag's name, or a wildcard."""
        return self._registration.pattern

    @property
    def tag(self) -> Tag | None:
        """The tag subscribed to; None for a wildcard, where each message says its own."""
        return self._tag

    @property
    def reliable(self) -> bool:
        return self._registration.reliable

    @property
    def latest(self) -> Message | None:
        """The newest message that any publisher's ring holds, whether received or not; None when there is none.

        Raises ClosedError, ForkedError, DecodeError.
        """
        return self.newest()

    def stats(self) -> SubscriberStats:
        """Counters and latency percentiles since this subscriber was made. Raises ForkedError."""
        return summarise(self.counters(), self.latency_histogram(), _core.latency_bucket_ns)

    def move(self, at: str | None = None, transport: str | None = None) -> None:
        """Have the proxy sit elsewhere ("publisher", "subscriber", "node:NAME", "auto"), or another transport carry the
        streams, while messages flow: none comes twice or out of order, none is lost but what the transport loses.
        Returns when they come that way; where that is not possible yet they go on as before and move later. An
        administrator's setting ('ringcast set') counts before this.

        Raises ValueError, QosMismatch (no such transport, or it does not promise reliable delivery),
        DaemonUnavailable, ClosedError, ForkedError.
        """
        self._attachment.check()
        if at is not None:
            check_place(at)
        self._registration.move(at, transport)

    # ---------------------------------------------------------------- loops and event loops

    def __iter__(self) -> Iterator[Message]:
        """Messages until somebody closes the subscriber. Raises as `recv` does otherwise."""
        receive = self.recv
        while True:
            try:
                message = receive()
            except ClosedError:
                return
            yield message

    def fileno(self) -> int:
        """A descriptor that is readable while there is something to receive: for select, poll and event loops.

        When it is, call `recv_nowait` until it raises WouldBlock; that makes the descriptor quiet again. It may be
        readable without need, at first above all. Never read it, and do not close it.
        Raises ClosedError, ForkedError, DaemonUnavailable, ResourceLimit.
        """
        self._attachment.check()
        return self._registration.use_bridge(self, self._attachment.bridge())

    async def recv_async(self, timeout: float | None = None, copy: bool = True) -> Message:
        """`recv` for asyncio. Raises as `recv` does, and DaemonUnavailable when its first call finds no daemon."""
        if self._ready is None:
            from ringcast.client.readiness import Readiness  # loads asyncio, which most programs do without

            self._ready = Readiness(self.fileno())
            weakref.finalize(self, self._ready.close).atexit = False
        return await self._ready.receive(lambda: self.recv_nowait(copy), lambda: self._registration.failure, timeout)

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            try:
                message = await self.recv_async()
            except ClosedError:
                return
            yield message

    # ---------------------------------------------------------------- notification services

    def on_message(
        self, callback: Callable[[Message], object], blocking: bool = True, on_error: OnError | None = None
    ) -> Callback:
        """Call `callback` for messages, on a thread of its own.

        Blocking: one after the other, none left out; what the ring overwrites meanwhile shows in `lost`. Otherwise:
        when the callback took its time, the newest wins, and `skipped` counts the others. An exception in the
        callback is logged, counted in `failed` and given to `on_error(error, message)`; the thread goes on.
        Raises ClosedError, ForkedError, BusyError (there is a callback or queue on it already), ValueError
        (non-blocking on a reliable subscription).
        """
        self._check_choice(blocking)
        service = Callback(self, self._registration, callback, blocking, on_error)
        self._registration.consumed_by(service)
        return self._attachment.employs(service)

    def queue(self, maxsize: int = 1024, blocking: bool = True, on_error: OnError | None = None) -> MessageQueue:
        """A bounded queue filled by a thread of its own. When it is full a blocking one leaves messages in the ring;
        a non-blocking one drops its oldest and counts it in `skipped`. Raises as `on_message` does, and ValueError
        for a `maxsize` below 1."""
        self._check_choice(blocking)
        service = MessageQueue(self, self._registration, maxsize, blocking, on_error)
        self._registration.consumed_by(service)
        return self._attachment.employs(service)

    def event(self) -> ArrivalEvent:
        """Something like threading.Event, set whenever a message arrives; receiving stays yours.

        Raises as `tag.subscribe` does.
        """
        # As a history it is nobody's subscriber, so that publishers count one reader and not two.
        watcher = Subscriber(self._attachment, self.pattern, Undecoded(), role="history")
        return self._attachment.employs(ArrivalEvent(self, watcher, watcher._registration))

    def blackboard(self) -> Blackboard:
        """The newest message, for any number of threads, which may wait for a newer one.

        Raises ClosedError, ForkedError.
        """
        self._attachment.check()
        return Blackboard(self)

    def _check_choice(self, blocking: bool) -> None:
        self._attachment.check()
        if self.reliable and not blocking:
            raise ValueError("a reliable subscription delivers every message and blocking=False does not: choose one")

    # ---------------------------------------------------------------- the end

    def close(self) -> None:
        """Give the right back; whoever waits on it gets ClosedError. A second call does nothing, and so does one in a
        forked child."""
        if self._attachment.is_forked or not self._registration.close(super().close):
            return
        if self._ready is not None:
            self._ready.close()
        self._finalizer.detach()
        self._attachment.dismiss(self)
        self._attachment.registry.release(self._registration)

    def __repr__(self) -> str:
        return f"<Subscriber to {self.pattern!r}{' closed' if self.closed else ''}>"
