"""A subscriber: cursors over the rings that match a pattern, and the registration by which they are shown to it.

`recv`, `recv_nowait`, `recv_many` are the native methods themselves. A subscriber belongs to one thread or task at a
time; more of them share the rings, not the cursor. How rings come and go is in `ringcast.client.ring_following`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Decoders, Undecoded
from ringcast.client.ring_following import Scaling
from ringcast.client.rings.lending import lend
from ringcast.client.rings.subscribed import RECEIVING, SubscribedRings
from ringcast.errors import ClosedError
from ringcast.measure.receiving import SubscriberStats, summarise
from ringcast.message import Message, T_co
from ringcast.model import schedule
from ringcast.model.closing import Closing
from ringcast.model.options import Start
from ringcast.model.place import check_place
from ringcast.model.priority import Change
from ringcast.notify import ArrivalEvent, Blackboard, Callback, MessageQueue, OnError

if TYPE_CHECKING:
    from ringcast.qos import Profile, QualityEvent
    from ringcast.quality import FidelityCallback, QualityCallback
    from ringcast.scaling.fidelity import Fidelity
    from ringcast.tag import Tag


class Subscriber(Closing, Generic[T_co]):
    """Made by `tag.subscribe()` or `session.subscribe(pattern)`. `Subscriber[T]` receives values of type T.

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
        scaling: Scaling = Scaling(),
        tag: Tag[Any] | None = None,
    ) -> None:
        self._attachment = attachment
        self._rings = SubscribedRings(
            attachment, pattern, decoders, start=start, reliable=reliable, busy_poll=busy_poll, scaling=scaling, tag=tag
        )
        lend(self._rings, self, RECEIVING)

    # ---------------------------------------------------------------- receiving

    def recv(self, timeout: float | None = None, copy: bool = True) -> Message[T_co]:
        """The next message. With `copy=False` its data may be a view of the ring: ask `msg.valid` after having used it.

        Raises TimeoutError, ClosedError, ForkedError, BusyError (another thread receives on it), DecodeError and
        CorruptRing (concern one message or ring; receive again to go on), TagDestroyed, QosMismatch and ResourceLimit
        (a ring that appeared could not be read as asked).
        """
        return self._rings.recv(timeout, copy)

    def recv_nowait(self, copy: bool = True) -> Message[T_co]:
        """The next message, or WouldBlock. Raises as `recv` does otherwise, without TimeoutError."""
        return self._rings.recv_nowait(copy)

    def recv_many(self, n: int, timeout: float | None = None) -> list[Message[T_co]]:
        """Wait for at least one message, return at most `n`. Raises as `recv` does."""
        return self._rings.recv_many(n, timeout)

    def recv_columns(self, n: int, timeout: float | None = None, most_bytes: int = 1 << 26) -> _core.Columns:
        """As `recv_many`, into columns: at most `n` messages of together `most_bytes`, undecoded. Raises as `recv`
        does, without DecodeError."""
        return self._rings.recv_columns(n, timeout, most_bytes)

    @property
    def pattern(self) -> str:
        """What was subscribed to: a tag's name, or a wildcard."""
        return self._rings.registration.pattern

    @property
    def tag(self) -> Tag[object] | None:
        """The tag subscribed to; None for a wildcard, where each message says its own."""
        return self._rings.tag

    @property
    def reliable(self) -> bool:
        return self._rings.registration.reliable

    @property
    def latest(self) -> Message[T_co] | None:
        """The newest message that any publisher's ring holds, whether received or not; None when there is none.

        Raises ClosedError, ForkedError, DecodeError.
        """
        return self._rings.newest()

    @property
    def lost(self) -> int:
        """How many messages this subscription lost so far, with messages and at the ends of streams."""
        return self._rings.lost

    def counters(self) -> dict[str, int]:
        """received, lost, bytes, corrupt, and the number of rings. Raises ForkedError."""
        return self._rings.counters()

    def stats(self) -> SubscriberStats:
        """Counters and latency percentiles since this subscriber was made. Raises ForkedError."""
        return summarise(self._rings.counters(), self._rings.latency_histogram(), _core.latency_bucket_ns)

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
        self._rings.registration.move(at, transport)

    def prioritise(
        self, priority: str | None = None, *, dscp: str | int | None = None, sched: str | None = None,
        bandwidth: str | None = None,
    ) -> None:  # fmt: skip
        """Make the channels that bring this subscriber messages of other nodes more or less urgent, while messages
        flow: none is lost, repeated or put out of order. `priority` is a class ("low", "normal", "high", "critical"),
        `dscp` another code point for their packets, `sched` the policy of the threads that send and deliver
        ("fifo:30", "deadline:1ms/10ms"), `bandwidth` what is kept for each of the link ("5mbit"). None leaves one as it
        is, "" takes it back. What a kernel refuses is not in force, and `session.channels()` says so. Returns when it
        is in force, or later if it cannot be yet. An administrator's setting ('ringcast set') counts before this.

        Raises ValueError, DaemonUnavailable, ClosedError, ForkedError.
        """
        self._attachment.check()
        change = Change(priority, dscp if dscp is None else str(dscp), sched, bandwidth)
        self._rings.registration.move(None, None, change.check())

    def take_schedule(self, sched: str | None = None) -> str:
        """Let the calling thread, which is going to receive, have the schedule of the channels that its messages come
        by, now and when that changes; or `sched` ("fifo:20"). Returns what the kernel has: "other" where it refuses.
        Callbacks and queues do that for their threads. `take_schedule("other")` gives it back.

        Raises ValueError, ClosedError, ForkedError.
        """
        self._attachment.check()
        return self._rings.registration.threads.take(sched)

    # ---------------------------------------------------------------- loops and event loops

    def __iter__(self) -> Iterator[Message[T_co]]:
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
        return self._rings.fileno()

    async def recv_async(self, timeout: float | None = None, copy: bool = True) -> Message[T_co]:
        """`recv` for asyncio. Raises as `recv` does, and DaemonUnavailable when its first call finds no daemon."""
        return await self._rings.receive(timeout, copy)

    async def recv_many_async(self, n: int, timeout: float | None = None) -> list[Message[T_co]]:
        """`recv_many` for asyncio. Raises as `recv_async` does."""
        if n < 1:
            raise ValueError("recv_many needs room for at least one message")
        return self._rings.with_queued(await self._rings.receive(timeout, copy=True), n)

    async def __aiter__(self) -> AsyncIterator[Message[T_co]]:
        while True:
            try:
                message = await self.recv_async()
            except ClosedError:
                return
            yield message

    # ---------------------------------------------------------------- notification services

    def on_message(
        self, callback: Callable[[Message[T_co]], object], blocking: bool = True, on_error: OnError | None = None,
        sched: str | None = None,
    ) -> Callback[T_co]:  # fmt: skip
        """Call `callback` for messages, on a thread of its own.

        Blocking: one after the other, none left out; what the ring overwrites meanwhile shows in `lost`. Otherwise:
        when the callback took its time, the newest wins, and `skipped` counts the others. An exception in the
        callback is logged, counted in `failed` and given to `on_error(error, message)`; the thread goes on. The thread
        has the schedule of the channel that its messages come by, or `sched` ("fifo:20", "other").
        Raises ClosedError, ForkedError, BusyError (there is a callback or queue on it already), ValueError
        (non-blocking on a reliable subscription).
        """
        self._check_choice(blocking, sched)
        service = Callback(self._rings, callback, blocking, on_error, sched)
        self._rings.registration.consumed_by(service)
        return self._attachment.employs(service)

    def queue(
        self, maxsize: int = 1024, blocking: bool = True, on_error: OnError | None = None, sched: str | None = None
    ) -> MessageQueue[T_co]:
        """A bounded queue filled by a thread of its own. When it is full a blocking one leaves messages in the ring;
        a non-blocking one drops its oldest and counts it in `skipped`. `sched` as in `on_message`. Raises as
        `on_message` does, and ValueError for a `maxsize` below 1."""
        self._check_choice(blocking, sched)
        service: MessageQueue[T_co] = MessageQueue(self._rings, maxsize, blocking, on_error, sched)
        self._rings.registration.consumed_by(service)
        return self._attachment.employs(service)

    def event(self) -> ArrivalEvent:
        """Something like threading.Event, set whenever a message arrives; receiving stays yours.

        Raises as `tag.subscribe` does.
        """
        # As a history it is nobody's subscriber, so that publishers count one reader and not two.
        watcher = SubscribedRings(self._attachment, self.pattern, Undecoded(), role="history")
        return self._attachment.employs(ArrivalEvent(self._rings, watcher))

    def on_quality(
        self, callback: Callable[[QualityEvent], object], profile: str | Profile = "sensor",
        on_error: OnError | None = None,
    ) -> QualityCallback:  # fmt: skip
        """Call `callback` on a thread of its own when a promise of the profile is broken: no message of a publisher for
        a period ("deadline"), none within the lease ("silent", and "alive" with the next), messages received later
        than the profile's latency or the subscription's `deadline_s` allow ("late"), or lost ("lost"). Each event says
        which publisher; 0 is all together. It consumes nothing: receive as you do. Raises ValueError (no such
        profile), ClosedError, ForkedError."""
        from ringcast.client.rings.profiles import named
        from ringcast.quality import QualityCallback

        self._attachment.check()
        return self._attachment.employs(QualityCallback(self._rings, named(profile), callback, on_error))

    @property
    def fidelity(self) -> Fidelity:
        """What this subscription has of the range that it asked for (`rate_hz`, `size`), and in `why` what does not
        allow more, which is '' with the best. Without a range it is what was asked for."""
        return self._rings.registration.fidelity

    def on_fidelity(
        self, callback: Callable[[Fidelity], object], on_error: OnError | None = None
    ) -> FidelityCallback:  # fmt: skip
        """Call `callback` on a thread of its own whenever this subscription gets more or less of its range. It consumes
        nothing. Raises ClosedError, ForkedError."""
        from ringcast.quality import FidelityCallback

        self._attachment.check()
        return self._attachment.employs(FidelityCallback(self._rings, callback, on_error))

    def blackboard(self) -> Blackboard[T_co]:
        """The newest message, for any number of threads, which may wait for a newer one.

        Raises ClosedError, ForkedError.
        """
        self._attachment.check()
        return Blackboard(self._rings)

    def _check_choice(self, blocking: bool, sched: str | None) -> None:
        self._attachment.check()
        if sched:
            schedule.read(sched)
        if self.reliable and not blocking:
            raise ValueError("a reliable subscription delivers every message and blocking=False does not: choose one")

    # ---------------------------------------------------------------- the end

    @property
    def closed(self) -> bool:
        return self._rings.closed

    def close(self) -> None:
        """Give the registration back; whoever waits on it gets ClosedError. A second call does nothing, and so does
        one in a forked child."""
        self._rings.close()

    def __repr__(self) -> str:
        return f"<Subscriber to {self.pattern!r}{' closed' if self.closed else ''}>"
