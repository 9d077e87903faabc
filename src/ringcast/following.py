"""How a subscriber follows publishers: which rings it reads, from which message on, and by which bell it is woken.

A ring that was there before the subscription is read from where `start` says, counted from the moment in which the
daemon granted it and not from the later one in which the ring arrives here: a publisher may have been told of this
reader and have sent in between. A ring born after it is read from its first message. After a daemon's restart every
ring not known yet is of the second kind. Rings already attached are recognised by their incarnation and left alone.
A mirror of a remote publisher that was read in another mirror before is read on from where that one ended.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from ringcast import _core
from ringcast.connection import Connection
from ringcast.control.link import close_all
from ringcast.control.messages import Done, RingUp, Subscribe, UseMailbox
from ringcast.decoding import Decoders
from ringcast.descriptors import copies
from ringcast.errors import BusyError, ClosedError, QosMismatch, RingcastError
from ringcast.rights import Subscription
from ringcast.tag import TagAttributes

Start = Literal["new", "latest", "earliest"] | int | Mapping[int, int]
"""Where a subscription begins. A mapping gives numbers by incarnation, for whoever goes on where it once stopped; rings
that it does not name are read from the oldest message held."""

_FIRST = {"new": _core.START_NEW, "latest": _core.START_LATEST, "earliest": _core.START_EARLIEST}
# Waiting on each ring's own bell is fastest up to here; beyond, and on kernels that cannot wait for several words,
# publishers ring one mailbox instead.
_DIRECT_RINGS = 8 if _core.futex_waitv_available() else 1


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
    """How a subscriber wants the streams: every n-th message, scaled at the publisher, at the subscriber or on a node
    in between, and carried by which transport."""

    every: int = 1
    at: str = "publisher"
    transport: str = ""

    def check(self) -> Scaling:
        """Raises ValueError."""
        if not isinstance(self.every, int) or isinstance(self.every, bool) or not 1 <= self.every <= 2**32:
            raise ValueError(f"every is a whole number from 1 on, not {self.every!r}")
        if self.at not in ("publisher", "subscriber") and not (self.at.startswith("node:") and len(self.at) > 5):
            raise ValueError(f"at is 'publisher', 'subscriber' or 'node:NAME', not {self.at!r}")
        return self


def check_reliable(tag: str, attributes: TagAttributes) -> None:
    """Raises QosMismatch when publishers on the tag wait for nobody."""
    if attributes.max_wait_s == 0:
        raise QosMismatch(
            "reliable delivery",
            f"tag {tag!r} has max_wait_s=0",
            "subscribe with reliable=False, or make the tag with a bound",
        )


class _Place:
    """How far a remote publisher's stream came in the mirror that is, or was, its ring here."""

    def __init__(self, up: RingUp, ring_fd: int, begin: int) -> None:
        self.ring = up.ring
        self._begin = begin
        self._history: _core.RingHistory | None = _core.RingHistory()
        self._history.attach(ring_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.ring)

    def end(self) -> int:
        """Nothing is written to the mirror any more: where the next one is to begin."""
        if self._history is not None:
            _, newest = self._history.bounds()
            if newest >= 0:  # or it stayed empty
                self._begin = newest + 1
            self._history.close()
            self._history = None
        return self._begin


class Following(Subscription):
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
        self._bridged = False
        self._consumer: object = None
        self._places: dict[int, _Place] = {}

    def request(self) -> tuple[Subscribe, tuple[int, ...]]:
        mailbox = () if self.mailbox_fd is None else (self.mailbox_fd,)
        return Subscribe(
            id=0, pattern=self.pattern, subscription=self.number, role=self._role, reliable=self.reliable,
            mailbox=bool(mailbox), counter_index=self._counter_index,
            start="earliest" if self.standing or isinstance(self._start, Mapping) else self._start,
            every=self.scaling.every, at=self.scaling.at, transport=self.scaling.transport,
        ), mailbox  # fmt: skip

    def attach(self, up: RingUp, ring_fd: int, bell_fd: int) -> None:
        reader = self._reader()
        if reader is None:
            return
        if self.reliable:
            check_reliable(up.info.tag, up.attributes)
        place = self._places.get(up.info.incarnation)
        if place is not None and place.ring == up.ring:
            return
        start = self._start_on(up) if place is None else place.end()
        if start > 0:
            start = -(-start // up.every) * up.every  # what the ring has left out is not loss
        reader.attach(
            ring_fd, bell_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.ring,
            start=start, tag=up.info.tag, publisher=up.info,
            decode=self._decoders.of(up.info.tag, up.attributes), prefault=up.attributes.prefault,
            every=1 if up.every == self.scaling.every else self.scaling.every,
        )  # fmt: skip
        if up.ring != up.info.incarnation and self._role == "subscriber":
            if place is not None:
                reader.detach(place.ring, drain=True)
            self._places[up.info.incarnation] = _Place(up, ring_fd, start)
        if self.mailbox_fd is None and len(reader.incarnations) > _DIRECT_RINGS:
            self.mailbox_fd = reader.use_mailbox()
            # Publishers ring it from their next send on; what they sent before is found by looking once more.
            self._connection.post(
                UseMailbox(id=0, subscription=self.number), (self.mailbox_fd,), lambda _: self._look_again()
            )

    def _start_on(self, up: RingUp) -> int:
        if isinstance(self._start, Mapping) and up.info.incarnation in self._start:
            return self._start[up.info.incarnation]
        if up.born_after or self.standing:
            return _core.START_EARLIEST
        match self._first:
            case _core.START_NEW:
                return up.next_seq
            case _core.START_LATEST:
                return max(0, up.next_seq - 1)
            case first:
                return first

    def ring_down(self, incarnation: int) -> None:
        reader = self._reader()
        if reader is not None:
            with self.lock:
                if not self.closed:
                    for place in self._places.values():
                        if place.ring == incarnation:
                            place.end()
                    reader.detach(incarnation, drain=True)

    def fail(self, error: RingcastError) -> None:
        self.failure = error
        if (reader := self._reader()) is not None:
            reader.fail(error)

    def use_bridge(self, reader: _core.RingReader, bridge: _core.Bridge) -> int:
        """Have arrivals signalled on an eventfd; returns it. Raises ClosedError, the subscription's
        failure, and as `Connection.call` does."""
        with self.lock:
            if self.closed:
                raise ClosedError("subscriber")
            if self.failure is not None:
                raise self.failure
            event_fd = reader.use_bridge(bridge)
            self.mailbox_fd = bridge.mailbox_fd
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
