"""A history on this node: the rings of a tag at any index, without a message or a system call.

`latest` is the native method itself, and so are `at`, `range`, `bounds` while one publisher numbers the messages. Rings
whose publishers have left are part of a history for as long as the node's memory allows.
"""

from __future__ import annotations

import heapq
import math
import weakref
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.connection import Connection
from ringcast.client.decoding import Decoders
from ringcast.client.registration import Subscription
from ringcast.client.remote_history import RemoteHistory
from ringcast.client.rings.lending import lend
from ringcast.control.answers import PublisherListing
from ringcast.control.notices import RingUp
from ringcast.control.requests import ListPublishers, Subscribe
from ringcast.errors import HistoryError, RingcastError
from ringcast.message import Message, T_co
from ringcast.model.closing import Closing
from ringcast.model.identity import PublisherInfo
from ringcast.model.place import PUBLISHER
from ringcast.model.staleness import GAPS, bound_s, longest_gap_ns

if TYPE_CHECKING:
    from ringcast.tag import Tag

_LAST = 2**64 - 1
_NUMBERED = ("at", "range", "bounds")
_PULLS = (*_NUMBERED, "latest", "range_columns", "before", "between")


class HistoryRings(_core.RingHistory):
    """The rings that a history reads, with its registration. Raises what `Subscription.register` does."""

    def __init__(
        self, attachment: Attachment, tag: Tag[Any], decoders: Decoders, *, limit: int, incarnation: int | None
    ) -> None:
        attachment.check()
        super().__init__()
        self.face: weakref.ref[LocalHistory[Any]] | None = None
        self.tag = tag  # kept open: a restarted daemon has to make it as it was
        self._attachment = attachment
        self.registration = _HistoryRegistration(
            attachment.connection, attachment.registry.number(), tag.name, self, decoders=decoders, limit=limit,
            incarnation=incarnation,
        )  # fmt: skip
        try:
            attachment.registry.subscribe(self.registration)
        except BaseException:
            self.registration.close(super().close)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self.registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    def rearranged(self) -> None:
        """Rings came or went."""
        if self.face is not None and (face := self.face()) is not None:
            face._rearranged()

    def refuse(self, error: RingcastError) -> None:
        """Let every later pull raise `error`."""

        def refused(*_: Any, **__: Any) -> NoReturn:
            raise error

        face = self.face() if self.face is not None else None
        for shown, names in ((self, ("latest", "range")), (face, _PULLS)):
            for name in names if shown is not None else ():
                setattr(shown, name, refused)

    def close(self) -> None:
        if self._attachment.is_forked or not self.registration.close(super().close):
            return
        self._finalizer.detach()
        self._attachment.registry.release(self.registration)


class LocalHistory(Closing, Generic[T_co]):
    """A `History` of this node's publishers. See there for what is not said here."""

    def __init__(
        self,
        attachment: Attachment,
        tag: Tag[Any],
        decoders: Decoders,
        *,
        depth: int | None = None,
        incarnation: int | None = None,
    ) -> None:
        if depth is not None and depth < 1:
            raise ValueError(f"depth is at least 1, not {depth}")
        self._attachment = attachment
        self._decoders = decoders
        self._depth = depth
        self._only: int | None = None
        self.declared: weakref.finalize[Any, Any] | None = None
        """Ends what it declared of its pulls."""
        self._rings = HistoryRings(attachment, tag, decoders, limit=depth or 0, incarnation=incarnation)
        lend(self._rings, self, ("latest", "range_columns"))
        with self._rings.registration.lock:  # rings come and go under it
            self._rings.face = weakref.ref(self)
            self._rearranged()

    @property
    def tag(self) -> Tag[object]:
        return self._rings.tag

    @property
    def closed(self) -> bool:
        return self._rings.closed

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Nobody is asked, so nobody is silent."""
        return ()

    @property
    def incarnations(self) -> list[int]:
        """The publishers whose rings are held."""
        return self._rings.incarnations

    # ---------------------------------------------------------------- by number

    def latest(self, back: int = 0, copy: bool = True) -> Message[T_co]:
        """Raises Empty, HistoryError, CorruptRing, DecodeError, ClosedError, ForkedError."""
        return self._rings.latest(back, copy)

    def at(self, seq: int, incarnation: int = 0, copy: bool = True) -> Message[T_co]:
        """`incarnation` says whose number it is, 0 for the only publisher. Raises as `latest` does, and Overwritten,
        NotYet."""
        return self._rings.at(seq, incarnation or self._whose(), copy)

    def range(self, first: int, last: int, incarnation: int = 0) -> list[Message[T_co]]:
        """Raises as `latest` does."""
        return self._rings.range(first, last, incarnation or self._whose())

    def since(self, seq: int) -> list[Message[T_co]]:
        """Raises as `latest` does."""
        return self.range(seq, _LAST)

    def bounds(self, incarnation: int = 0) -> tuple[int, int]:
        """Raises as `latest` does."""
        return self._rings.bounds(incarnation or self._whose())

    def range_columns(
        self,
        first: int,
        last: int,
        incarnation: int = 0,
        *,
        every: int = 1,
        most_rows: int = 65536,
        most_bytes: int = 1 << 26,
    ) -> _core.Columns:
        """As `range`, into columns and undecoded: those whose number is a multiple of `every`, at most so many rows and
        bytes. Ask again from `following` until that is above `last` or what was sent."""
        return self._rings.range_columns(
            first, last, incarnation, every=every, most_rows=most_rows, most_bytes=most_bytes
        )

    # ---------------------------------------------------------------- by time

    def before(self, sent_ns: int) -> Message[T_co]:
        """The daemon finds it, so that the messages passed over need not be decoded.

        Raises as `latest` does, and TypeError, ValueError, DaemonUnavailable, BrokenError.
        """
        found: list[Message[T_co]] = []
        for view in self._views():
            try:
                found.append(view.before(sent_ns))
            except HistoryError:
                continue
        if not found:
            raise HistoryError(f"nothing that is held was sent by {sent_ns} ns (UTC)")
        return max(found, key=lambda message: (message.sent_ns, message.publisher.incarnation, message.seq))

    def between(self, first_ns: int, last_ns: int) -> list[Message[T_co]]:
        """The daemon finds them. Raises as `before` does."""
        streams = [view.between(first_ns, last_ns) for view in self._views()]
        return list(heapq.merge(*streams, key=lambda message: message.sent_ns))

    def _views(self) -> list[RemoteHistory[T_co]]:
        """What this history holds, as the daemon reads it: one for each publisher."""
        incarnations = self._rings.incarnations
        if not incarnations:
            self._rings.latest()  # raises what there is to say: Empty, or ClosedError
        decode = self._decoders.of(self.tag.name, self.tag.attributes)
        return [
            RemoteHistory(self._attachment, self._rings.tag, decode, at=PUBLISHER, depth=self._depth, incarnation=one)
            for one in incarnations
        ]

    def staleness_s(self) -> float:
        """Reading takes no time that would count. Raises Empty, CorruptRing, DecodeError, DaemonUnavailable,
        ClosedError, ForkedError."""
        newest = self._rings.latest(copy=False)
        incarnation = newest.publisher.incarnation
        if incarnation not in {info.incarnation for info in self._publishers()}:
            return math.inf
        messages = self._rings.range(max(0, newest.seq - GAPS), newest.seq, incarnation=incarnation)
        return bound_s(longest_gap_ns(message.sent_ns for message in reversed(messages)), 0.0)

    # ---------------------------------------------------------------- whose numbers

    def _rearranged(self) -> None:
        """With one ring, numbers need no explanation and the native methods are shown. With several, whose is meant has
        to be found out first."""
        self._only = None
        if len(self._rings.incarnations) > 1:
            for name in _NUMBERED:
                self.__dict__.pop(name, None)
        else:
            lend(self._rings, self, _NUMBERED)

    def _whose(self) -> int:
        held = set(self._rings.incarnations)
        if len(held) < 2:
            return 0
        if self._only is None:
            alive = [info for info in self._publishers() if info.incarnation in held]
            if len(alive) != 1:
                names = ", ".join(map(str, alive)) or "none of them alive"
                raise HistoryError(
                    f"{len(held)} publishers number their messages on {self.tag.name!r} ({names}); say whose you mean "
                    "with tag.history(publisher=...), one of tag.publishers(left=True)"
                )
            self._only = alive[0].incarnation
        return self._only

    def _publishers(self) -> list[PublisherInfo]:
        pages = self._attachment.connection.call_pages(ListPublishers(id=0, tag=self.tag.name), PublisherListing)
        return [row.info for page in pages for row in page.rows if row.alive]

    def close(self) -> None:
        """Let go of the rings. A second call does nothing, and so does one in a forked child."""
        if self.declared is not None and not self._rings.closed:
            self.declared()
        self._rings.close()

    def __repr__(self) -> str:
        return f"<History of {self.tag.name!r}{' closed' if self.closed else ''}>"


class _HistoryRegistration(Subscription):
    """It is shown rings, and is nobody's subscriber."""

    def __init__(
        self,
        connection: Connection,
        number: int,
        tag: str,
        rings: HistoryRings,
        *,
        decoders: Decoders,
        limit: int,
        incarnation: int | None,
    ) -> None:
        super().__init__(connection, number, tag)
        self._rings = weakref.ref(rings)
        self._decoders = decoders
        self._limit = limit
        self._incarnation = incarnation

    def request(self) -> tuple[Subscribe, tuple[int, ...]]:
        return Subscribe(id=0, pattern=self.pattern, subscription=self.number, role="history"), ()

    def attach(self, up: RingUp, ring_fd: int, bell_fd: int) -> None:
        rings = self._rings()
        if rings is None or self._incarnation not in (None, up.info.incarnation):
            return
        rings.attach(
            ring_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.info.incarnation,
            tag=up.info.tag, publisher=up.info, decode=self._decoders.of(up.info.tag, up.attributes), limit=self._limit,
        )  # fmt: skip
        rings.rearranged()

    def ring_down(self, incarnation: int, end: int | None) -> None:
        """The node let go of a ring, because it has no memory left or because the tag was destroyed. Keeping the
        mapping would keep the memory."""
        rings = self._rings()
        with self.lock:
            if rings is not None and not self.closed:
                rings.detach(incarnation)
                rings.rearranged()

    def fail(self, error: RingcastError) -> None:
        """What is held can still be read."""
        self.failure = error

    def right_taken(self, error: RingcastError) -> None:
        self.fail(error)
        rings = self._rings()
        if rings is not None:
            with self.lock:
                for incarnation in [] if self.closed else rings.incarnations:
                    rings.detach(incarnation)
            rings.refuse(error)
