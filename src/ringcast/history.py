"""A history: the rings of a tag at any index. Pull: no message, no system call.

`latest`, `at`, `range`, `bounds` are the native methods themselves. Rings whose publishers have left are part of a
history for as long as the node's memory allows. Numbers are one publisher's: where several number their messages, the
only one alive is meant, and if there is no such one the caller has to say.
"""

from __future__ import annotations

import heapq
import math
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.connection import Connection
from ringcast.client.decoding import Decoders
from ringcast.client.registration import Subscription
from ringcast.client.remote_history import RemoteHistory
from ringcast.control.answers import PublisherListing
from ringcast.control.notices import RingUp
from ringcast.control.requests import ListPublishers, Subscribe
from ringcast.control.status import PublisherStatus
from ringcast.errors import HistoryError, RingcastError
from ringcast.message import Message
from ringcast.model.closing import Closing
from ringcast.model.identity import PublisherInfo
from ringcast.model.place import PUBLISHER
from ringcast.model.staleness import GAPS, bound_s, longest_gap_ns
from ringcast.publisher import Publisher

if TYPE_CHECKING:
    from ringcast.tag import Tag

Whose = PublisherInfo | PublisherStatus | Publisher | int

_LAST = 2**64 - 1


def incarnation_of(whose: Whose) -> int:
    """The stream that `whose` names: a publisher, its info or status, or its incarnation. Raises TypeError."""
    if isinstance(whose, PublisherStatus):
        return whose.info.incarnation
    if isinstance(whose, PublisherInfo | Publisher):
        return whose.incarnation
    if isinstance(whose, int) and not isinstance(whose, bool):
        return whose
    raise TypeError(f"publisher is a PublisherInfo, PublisherStatus, Publisher or an incarnation, not {whose!r}")


class History(_core.RingHistory, Closing):
    """Made by `tag.history()`.

    - `latest(back=0)`: the newest message, or the one `back` before it, by send time over all publishers
    - `at(seq)`: by sequence number
    - `range(first, last)`: those still held, both ends included; `lost` of each counts the missing ones before it
    - `bounds()`: (oldest held, newest); (n, n - 1) when empty

    They ask nobody. They raise Empty, Overwritten, NotYet, HistoryError (it does not go back that far; several
    publishers number their messages), CorruptRing, DecodeError, ClosedError, ForkedError. With `copy=False` the
    first two lend a view of the ring instead of copying; ask `msg.valid` after having used it.
    """

    def __init__(
        self,
        attachment: Attachment,
        tag: Tag,
        decoders: Decoders,
        *,
        depth: int | None = None,
        publisher: Whose | None = None,
    ) -> None:
        if depth is not None and depth < 1:
            raise ValueError(f"depth is at least 1, not {depth}")
        attachment.check()
        super().__init__()
        self._attachment = attachment
        self._tag = tag
        self._decoders = decoders
        self._depth = depth
        self._only: int | None = None
        self._registration = _Holding(
            attachment.connection, attachment.registry.number(), tag.name, self, decoders=decoders, limit=depth or 0,
            incarnation=None if publisher is None else incarnation_of(publisher),
        )  # fmt: skip
        try:
            attachment.registry.subscribe(self._registration)
        except BaseException:
            self._registration.close(super().close)
            raise
        self._finalizer = weakref.finalize(self, attachment.registry.abandon, self._registration)
        self._finalizer.atexit = False
        attachment.owns(self)

    @property
    def tag(self) -> Tag:
        return self._tag

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Nobody is asked, so nobody is silent. For likeness with a history on other nodes."""
        return ()

    def since(self, seq: int) -> list[Message]:
        """Everything held from `seq` on; `lost` of the first says how many are gone. Raises as `range` does."""
        return self.range(seq, _LAST)

    def before(self, sent_ns: int) -> Message:
        """The newest message that had been sent at `sent_ns` (UTC), by its publisher's clock. The daemon finds it, so
        that those passed over need not be decoded.

        Raises Empty, HistoryError (nothing held was sent by then), CorruptRing, DecodeError, DaemonUnavailable,
        ClosedError, ForkedError, BrokenError.
        """
        found: list[Message] = []
        for view in self._views():
            try:
                found.append(view.before(sent_ns))
            except HistoryError:
                continue
        if not found:
            raise HistoryError(f"nothing that is held was sent by {sent_ns} ns (UTC)")
        return max(found, key=lambda message: (message.sent_ns, message.publisher.incarnation, message.seq))

    def between(self, first_ns: int, last_ns: int) -> list[Message]:
        """Those held of all publishers that were sent from `first_ns` to `last_ns` (UTC), in the order of sending.
        The daemon finds them. Raises as `before` does, without HistoryError."""
        streams = [view.between(first_ns, last_ns) for view in self._views()]
        return list(heapq.merge(*streams, key=lambda message: message.sent_ns))

    def _views(self) -> list[RemoteHistory]:
        """What this history holds, as the daemon reads it: one for each publisher."""
        incarnations = self.incarnations
        if not incarnations:
            self.latest()  # raises what there is to say: Empty, or ClosedError
        decode = self._decoders.of(self._tag.name, self._tag.attributes)
        return [
            RemoteHistory(self._attachment, self._tag, decode, at=PUBLISHER, depth=self._depth, incarnation=incarnation)
            for incarnation in incarnations
        ]

    def staleness_s(self) -> float:
        """How much older than what its publisher has now the newest message of this history may be, at most: the
        publisher's period, which is the longest of the last 16 gaps between its messages. Reading takes no time that
        would count. Infinite when the publisher has left or has sent less than two messages.

        Raises Empty, CorruptRing, DecodeError, DaemonUnavailable, ClosedError, ForkedError.
        """
        newest = self.latest(copy=False)
        pages = self._attachment.connection.call_pages(ListPublishers(id=0, tag=self._tag.name), PublisherListing)
        alive = {row.info.incarnation for page in pages for row in page.rows if row.alive}
        incarnation = newest.publisher.incarnation
        if incarnation not in alive:
            return math.inf
        messages = super().range(max(0, newest.seq - GAPS), newest.seq, incarnation=incarnation)
        return bound_s(longest_gap_ns(message.sent_ns for message in reversed(messages)), 0.0)

    def rearranged(self) -> None:
        """Rings came or went. With one of them numbers need no explanation and the native methods stand bare; with
        several, an instance's attributes hide them behind the question whose is meant."""
        self._only = None
        for name in ("at", "range", "bounds"):
            if len(self.incarnations) > 1:
                setattr(self, name, self._asking(getattr(super(), name)))
            else:
                self.__dict__.pop(name, None)

    def _asking(self, native: Callable[..., Any]) -> Callable[..., Any]:
        me = weakref.ref(self)  # or the history would hold itself

        def ask(*numbers: int, incarnation: int = 0, **options: Any) -> Any:
            history = me()
            assert history is not None
            return native(*numbers, incarnation=incarnation or history._whose(), **options)

        return ask

    def _whose(self) -> int:
        if self._only is None:
            pages = self._attachment.connection.call_pages(ListPublishers(id=0, tag=self._tag.name), PublisherListing)
            held = set(self.incarnations)
            alive = [row.info for page in pages for row in page.rows if row.alive and row.info.incarnation in held]
            if len(alive) != 1:
                names = ", ".join(map(str, alive)) or "none of them alive"
                raise HistoryError(
                    f"{len(held)} publishers number their messages on {self._tag.name!r} ({names}); say whose you mean "
                    "with tag.history(publisher=...), one of tag.publishers(left=True)"
                )
            self._only = alive[0].incarnation
        return self._only

    def close(self) -> None:
        """Let go of the rings. A second call does nothing, and so does one in a forked child."""
        if self._attachment.is_forked or not self._registration.close(super().close):
            return
        self._finalizer.detach()
        self._attachment.registry.release(self._registration)

    def __repr__(self) -> str:
        return f"<History of {self._tag.name!r}{' closed' if self.closed else ''}>"


class _Holding(Subscription):
    """A history's right: it is shown rings, and is nobody's subscriber."""

    def __init__(
        self,
        connection: Connection,
        number: int,
        tag: str,
        history: History,
        *,
        decoders: Decoders,
        limit: int,
        incarnation: int | None,
    ) -> None:
        super().__init__(connection, number, tag)
        self._history = weakref.ref(history)
        self._decoders = decoders
        self._limit = limit
        self._incarnation = incarnation

    def request(self) -> tuple[Subscribe, tuple[int, ...]]:
        return Subscribe(id=0, pattern=self.pattern, subscription=self.number, role="history"), ()

    def attach(self, up: RingUp, ring_fd: int, bell_fd: int) -> None:
        history = self._history()
        if history is None or self._incarnation not in (None, up.info.incarnation):
            return
        history.attach(
            ring_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.info.incarnation,
            tag=up.info.tag, publisher=up.info, decode=self._decoders.of(up.info.tag, up.attributes), limit=self._limit,
        )  # fmt: skip
        history.rearranged()

    def ring_down(self, incarnation: int, end: int | None) -> None:
        """The node let go of a ring, for want of memory or because its tag was destroyed. Keeping the mapping would
        keep the memory."""
        history = self._history()
        with self.lock:
            if history is not None and not self.closed:
                history.detach(incarnation)
                history.rearranged()

    def fail(self, error: RingcastError) -> None:
        """What is held can still be read."""
        self.failure = error
