"""How a subscriber follows publishers: which rings it reads, from which message on, and by which bell it is woken.

A ring that was there before the subscription is read from where `start` says, counted from the moment in which the
daemon granted it and not from the later one in which the ring arrives here: a publisher may have been told of this
reader and have sent in between. A ring born after it is read from its first message. After a daemon's restart every
ring not known yet is of the second kind. Rings already attached are recognised by their incarnation and left alone.
A mirror of a remote publisher that was read in another mirror before is read on from where that one ended.

What is lost is counted by the publisher's numbers, from where the subscription begins: of a publisher that came after
it, from the first one; of others, from the first that its first ring could have. Which ring carries a message, and when
that ring began, does not matter.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from ringcast import _core
from ringcast.client.connection import Connection
from ringcast.client.decoding import Decoders
from ringcast.client.descriptors import copies
from ringcast.client.registration import Subscription
from ringcast.client.rings.intakes import Intakes
from ringcast.client.rings.profiles import own_profiles
from ringcast.client.rings.urgent_threads import UrgentThreads
from ringcast.control.answers import Done
from ringcast.control.link import Received, close_all
from ringcast.control.notices import FidelityNow, IntakeWanted, RingUp
from ringcast.control.requests import Move, Subscribe, UseMailbox
from ringcast.errors import BusyError, ClosedError, QosMismatch, RingcastError
from ringcast.model import priority
from ringcast.model.options import Start
from ringcast.model.place import AUTO, check_place, node_of
from ringcast.model.priority import Change
from ringcast.model.profile import Profile
from ringcast.model.tag import TagAttributes
from ringcast.scaling import Size, check_size
from ringcast.scaling.fidelity import Fidelity, Range
from ringcast.scaling.temporal import check_rate, first_due

logger = logging.getLogger("ringcast")

_FIRST = {"new": _core.START_NEW, "latest": _core.START_LATEST, "earliest": _core.START_EARLIEST}
# Waiting on each ring's own bell is fastest up to here; beyond, and on kernels that cannot wait for several words,
# publishers ring one mailbox instead.
_DIRECT_RINGS = 8 if _core.futex_waitv_available() else 1
# io_uring may be unwanted where a program runs, without being forbidden.
_KERNEL_SIGNALS = os.environ.get("RINGCAST_IO_URING", "") != "no"


def first_message(start: object) -> int:
    """Where `start` begins, as the core counts. Raises ValueError."""
    if isinstance(start, Mapping):
        return _core.START_EARLIEST
    if isinstance(start, str) and start in _FIRST:
        return _FIRST[start]
    if isinstance(start, int) and not isinstance(start, bool) and start >= 0:
        return start
    raise ValueError(f"start is 'new', 'latest', 'earliest' or a sequence number, not {start!r}")


class Scaling(NamedTuple):
    """How a subscriber wants the streams: every n-th message or so many a second, at which size, scaled at the
    publisher, at the subscriber or on a node in between, and carried by which transport."""

    every: int = 1
    at: str = AUTO
    transport: str = ""
    size: Size | None = None
    rate_hz: float | None = None
    ordered: bool = True
    priority: str = ""
    deadline_s: float | None = None
    requested: Profile | None = None
    range: Range | None = None
    only_best: bool = False

    def check(self) -> Scaling:
        """Raises ValueError."""
        if not isinstance(self.every, int) or isinstance(self.every, bool) or not 1 <= self.every <= 2**32:
            raise ValueError(f"every is a whole number from 1 on, not {self.every!r}")
        check_place(self.at)
        if self.deadline_s is not None and not 0 < self.deadline_s < math.inf:
            raise ValueError(f"deadline_s is seconds above 0, not {self.deadline_s!r}")
        if self.size is not None:
            check_size(self.size)
        if self.rate_hz is not None:
            check_rate(self.rate_hz)
            if self.every != 1:
                raise ValueError("every and rate_hz both say how many messages to leave out: choose one")
        if self.priority:
            priority.read(self.priority)
        return self


def check_reliable(tag: str, attributes: TagAttributes) -> None:
    """Raises QosMismatch when publishers on the tag wait for nobody."""
    if attributes.max_wait_s == 0:
        raise QosMismatch(
            "reliable delivery",
            f"tag {tag!r} has max_wait_s=0",
            "subscribe with reliable=False, or make the tag with a bound",
        )


class RingFollowing(Subscription):
    """A subscriber's right."""

    def __init__(
        self,
        connection: Connection,
        number: int,
        pattern: str,
        reader: _core.RingReader,
        *,
        start: Start,
        decoders: Decoders,
        reliable: bool = False,
        counter_index: int = -1,
        role: Literal["subscriber", "history"] = "subscriber",
        scaling: Scaling = Scaling(),
    ) -> None:
        super().__init__(connection, number, pattern)
        self.scaling = scaling
        self.reliable = reliable
        self.mailbox_fd: int | None = None
        self._reader = weakref.ref(reader)
        self._start = start
        self._first = first_message(start)
        self._decoders = decoders
        self._counter_index = counter_index
        self._role = role
        self._incarnation = int.from_bytes(os.urandom(8), "little") >> 1
        # Of a reader whose descriptor the kernel signals, for when its rings become too many.
        self._bridge: weakref.WeakMethod[Callable[[], _core.Bridge]] | None = None
        self._bridged = False
        self._warned = False
        self._consumer: object = None
        self._rings: dict[int, int] = {}  # by publisher, the last one that was its ring here
        self._since_ns = time.monotonic_ns()
        self.threads = UrgentThreads(scaling.priority)
        self._intakes = Intakes()
        self.fidelity = Fidelity(scaling.rate_hz, scaling.size)
        self.fidelity_changed = threading.Condition()

    def request(self) -> tuple[Subscribe, tuple[int, ...]]:
        self._intakes.forget()
        mailbox = () if self.mailbox_fd is None else (self.mailbox_fd,)
        span = self.scaling.range or Range()
        return Subscribe(
            id=0, pattern=self.pattern, subscription=self.number, incarnation=self._incarnation, role=self._role,
            reliable=self.reliable, mailbox=bool(mailbox), counter_index=self._counter_index,
            start="earliest" if self.standing or isinstance(self._start, Mapping) else self._start,
            every=self.scaling.every, at=self.scaling.at, transport=self.scaling.transport,
            size=self.scaling.size, rate_hz=self.scaling.rate_hz or 0.0, ordered=self.scaling.ordered,
            priority=self.scaling.priority,
            deadline_s=self.scaling.deadline_s or 0.0, requested=self.scaling.requested,
            profiles=[] if self.scaling.requested is None else own_profiles(),
            range_hz=span.hz, range_size=span.size, only_best=self.scaling.only_best,
        ), mailbox  # fmt: skip

    def attach(self, up: RingUp, ring_fd: int, bell_fd: int) -> None:
        reader = self._reader()
        if reader is None:
            return
        if self.reliable:
            check_reliable(up.info.tag, up.attributes)
        self._warn_of_detour(up)
        if up.begin is not None:  # what its reader has not read yet of an earlier stay is not read twice, or late
            self.forget(up.ring)
            reader.detach(up.ring, drain=False)
        before = self._rings.get(up.info.incarnation, 0)
        start = up.begin if up.begin is not None else _core.START_EARLIEST if before else self._start_on(up)
        if start > 0:
            start = first_due(start, up.every)  # what the ring has left out is not loss
        reader.attach(
            ring_fd, bell_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.ring,
            start=start, tag=up.info.tag, publisher=up.info,
            decode=self._decoders.of(up.info.tag, up.attributes, up.size),
            every=up.pace or (1 if up.every == self.scaling.every else self.scaling.every), paced=up.pace > 0,
            after=before, step=up.every, first=up.first_seq, unordered=up.unordered,
            inflow=self._intakes.filling(up.ring),
        )  # fmt: skip
        self._rings[up.info.incarnation] = up.ring
        self.threads.channel(up.info.incarnation, up.priority)
        if self.mailbox_fd is None and len(reader.incarnations) > _DIRECT_RINGS:
            if self._bridge is None:
                self.mailbox_fd = reader.use_mailbox()
            elif (make := self._bridge()) is not None:
                bridge = make()
                reader.use_bridge(bridge)
                self.mailbox_fd, self._bridged = bridge.mailbox_fd, True
            else:
                return  # the session has ended
            # Publishers ring it from their next send on; what they sent before is found by looking once more.
            self._connection.post(
                UseMailbox(id=0, subscription=self.number), (self.mailbox_fd,), lambda _: self._look_again()
            )

    def intake_wanted(self, notice: IntakeWanted, received: Received[Any]) -> None:
        self._intakes.wanted(notice, received, self._connection)

    def intake_unwanted(self, number: int) -> None:
        self._intakes.unwanted(number)

    def close(self, native_close: Callable[[], None]) -> bool:
        closed_now = super().close(native_close)
        self._intakes.close()
        return closed_now

    def _warn_of_detour(self, up: RingUp) -> None:
        """Once: a ring of this very node is read where it is, whichever node was to scale it."""
        far = node_of(self.scaling.at)
        own = up.ring == up.info.incarnation  # a mirror has an incarnation of its own
        if not far or far == up.info.node or not own or self._warned:
            return
        self._warned = True
        logger.warning(
            "publisher %s and this subscriber of %r are both on node %r: the stream does not go to node %r and back, "
            "and this subscriber scales it itself; subscribe with at='subscriber' to say so",
            up.info, up.info.tag, up.info.node, far,
        )  # fmt: skip

    def _start_on(self, up: RingUp) -> int:
        if isinstance(self._start, Mapping) and up.info.incarnation in self._start:
            return self._start[up.info.incarnation]
        if up.born_after or self.standing:
            younger = up.age_ns is not None and up.age_ns < time.monotonic_ns() - self._since_ns
            return 0 if younger else _core.START_EARLIEST
        match self._first:
            case _core.START_NEW:
                return up.next_seq
            case _core.START_LATEST:
                return max(up.first_seq, up.next_seq - 1)  # of a mirror it may not have come yet
            case first:
                return first

    def move(self, at: str | None, transport: str | None, urgency: Change = Change()) -> None:
        """Have the streams come another way. Raises what `Connection.call` does, and QosMismatch."""
        level, dscp, sched, bandwidth = urgency
        request = Move(
            id=0, subscription=self.number, at=at, transport=transport, priority=level, dscp=dscp, sched=sched,
            bandwidth=bandwidth,
        )  # fmt: skip
        self._connection.call(request, Done)
        with self.lock:  # what a restarted daemon is asked for
            scaling = self.scaling
            self.scaling = scaling._replace(
                at=scaling.at if at is None else at, transport=scaling.transport if transport is None else transport,
                priority=urgency.applied(scaling.priority),
            )  # fmt: skip
        self.threads.asked(self.scaling.priority)

    def fidelity_now(self, notice: FidelityNow) -> None:
        if notice.size is not None:
            self._decoders.resize(notice.size)
        with self.fidelity_changed:
            self.fidelity = Fidelity(notice.rate_hz or None, notice.size, notice.why)
            self.fidelity_changed.notify_all()

    def paced(self, ring: int, every: int) -> None:
        """The publisher sends faster or slower than before."""
        reader = self._reader()
        if reader is not None:
            with self.lock:
                if not self.closed:
                    reader.rescale(ring, every)

    def ring_down(self, incarnation: int, end: int | None) -> None:
        for publisher in [one for one, ring in self._rings.items() if ring == incarnation]:
            self.threads.gone(publisher)  # of a stream that moved, another ring is attached by now
        reader = self._reader()
        if reader is not None:
            with self.lock:
                if not self.closed:
                    reader.detach(incarnation, drain=True, end=end)

    def forget(self, ring: int) -> None:
        self._rings = {publisher: known for publisher, known in self._rings.items() if known != ring}

    def stream_ended(self, incarnation: int, end: int) -> None:
        if incarnation in self._rings:  # of others this reader never had anything
            self.ring_down(self._rings[incarnation], end)

    def fail(self, error: RingcastError) -> None:
        self.failure = error
        if (reader := self._reader()) is not None:
            reader.fail(error)

    def right_taken(self, error: RingcastError) -> None:
        self.fail(error)
        self._intakes.close()
        if (reader := self._reader()) is not None:
            with self.lock:
                for incarnation in [] if self.closed else reader.incarnations:
                    reader.detach(incarnation, drain=False)

    def descriptor(self, reader: _core.RingReader, bridge: Callable[[], _core.Bridge]) -> int:
        """Have arrivals signalled on an eventfd; returns it. By the kernel while it can and the rings are few, else by
        the session's bridge. Raises ClosedError, the subscription's failure, and as `Connection.call` does."""
        with self.lock:
            if self.closed:
                raise ClosedError("subscriber")
            if self.failure is not None:
                raise self.failure
            if self.mailbox_fd is None and _KERNEL_SIGNALS and (event_fd := reader.use_signal()) >= 0:
                self._bridge = weakref.WeakMethod(bridge)
                return event_fd
            event_fd = reader.use_bridge(bridge())
            self.mailbox_fd = bridge().mailbox_fd
            if self._bridged:
                return event_fd
            fds = copies((self.mailbox_fd,))
        try:
            self._connection.call(UseMailbox(id=0, subscription=self.number), Done, fds)
        finally:
            close_all(fds)
        self._bridged = True
        self._look_again()
        return event_fd

    # ---------------------------------------------------------------- one consumer at a time

    def consumed_by(self, consumer: object) -> None:
        """Raises BusyError when a callback or a queue is on it already, ClosedError."""
        with self.lock:
            if self.closed:
                raise ClosedError("subscriber")
            if self._consumer is not None:
                raise BusyError("subscriber")
            self._consumer = consumer

    def interrupt(self, consumer: object, reason: Exception) -> None:
        """Let the consumer have `reason` from its next receive that would wait."""
        with self.lock:
            if self._consumer is consumer and (reader := self._reader()) is not None:
                reader.fail(reason)

    def consumer_left(self, consumer: object) -> None:
        """Receiving works as before."""
        with self.lock:
            if self._consumer is consumer:
                self._consumer = None
                if (reader := self._reader()) is not None:
                    reader.fail(self.failure)

    def _look_again(self) -> None:
        reader: Any = self._reader()
        if reader is not None and not reader.closed:
            reader.poke()
