"""A history that may be on other nodes: every pull is a request to the daemon, which asks the nodes that have the
rings.

`LocalHistory` reads rings of this node without asking anybody; this is for all others. Invariant: a message pulled from
anywhere is the same `Message` that a subscriber would have received. Must not know how daemons reach each other.
"""

from __future__ import annotations

import heapq
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Generic, Literal

from ringcast import _core
from ringcast.client.attachment import Attachment
from ringcast.client.decoding import Decode
from ringcast.client.ring_following import Scaling
from ringcast.control import service
from ringcast.control.answers import HistoryPulled
from ringcast.control.descriptor import Descriptor
from ringcast.control.requests import PullHistory
from ringcast.control.service import Pull, PullAnswer
from ringcast.errors import BadMessage, ClosedError, HistoryError
from ringcast.message import Message, T_co
from ringcast.model.closing import Closing
from ringcast.model.place import PUBLISHER
from ringcast.model.staleness import bound_s
from ringcast.scaling import Size

if TYPE_CHECKING:
    from ringcast.tag import Tag

PATIENCE_S = 30.0
"""Longer than the daemon's, whose error says more."""

_LAST = 2**64 - 1
_Kind = Literal["latest", "before", "at", "range", "bounds", "span", "heads"]


class RemoteHistory(Closing, Generic[T_co]):
    """A `History` of publishers on whichever node. Made by `tag.history()` when rings of other nodes are meant.

    All methods raise Empty (nothing is held there), HistoryError (it does not go back that far; several publishers
    number their messages), BrokenError (a node is not there, or not any more), CorruptRing, DecodeError,
    DaemonUnavailable, ClosedError, ForkedError.
    """

    def __init__(
        self,
        attachment: Attachment,
        tag: Tag[Any],
        decode: Decode | None,
        scaling: Decode | None = None,
        *,
        at: str,
        depth: int | None = None,
        every: int = 1,
        incarnation: int = 0,
        size: Size | None = None,
    ) -> None:
        Scaling(every, at).check()
        if depth is not None and depth < 1:
            raise ValueError(f"depth is at least 1, not {depth}")
        attachment.check()
        self._attachment = attachment
        self._tag = tag
        self._decode = decode
        self._scaling = scaling
        self._place = at
        self._depth = depth or 0
        self._every = every
        self._size = size
        self._incarnation = incarnation
        self._closed = False
        self._measured: tuple[int, float] | None = None  # the period; the delay of the last pull and of what it found
        self._unanswered: tuple[str, ...] = ()
        self._buffer: weakref.finalize[[int], RemoteHistory[Any]] | None = None
        self.declared: weakref.finalize[Any, Any] | None = None
        """Ends what it declared of its pulls."""
        if depth is not None and at != PUBLISHER:
            buffer = attachment.registry.hold(tag.name, at, depth, every)
            self._buffer = weakref.finalize(self, attachment.registry.let_go, buffer)
            self._buffer.atexit = False
        attachment.owns(self)

    @property
    def tag(self) -> Tag[object]:
        return self._tag

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Nodes with publishers of the tag that did not answer the last pull: they may hold something newer, or more.
        When nobody answered, the pull has raised."""
        return self._unanswered

    # ---------------------------------------------------------------- pulls

    def latest(self, back: int = 0, copy: bool = True) -> Message[T_co]:
        """The newest message, or the one `back` before it, by send time over all publishers. What is pulled is always
        a copy; `copy` is here for likeness with a history on this node."""
        return self._one(self._ask("latest", first=_index("back", back)))

    def at(self, seq: int, copy: bool = True) -> Message[T_co]:
        """By sequence number. Raises also Overwritten, NotYet."""
        return self._one(self._ask("at", first=_index("seq", seq)))

    def range(self, first: int, last: int) -> list[Message[T_co]]:
        """Those still held, both ends included; `lost` of each counts the missing ones before it that were due."""
        return self._range(_index("first", first), _index("last", last), self._incarnation)

    def since(self, seq: int) -> list[Message[T_co]]:
        """Everything held from `seq` on; `lost` of the first says how many are gone."""
        return self.range(seq, _LAST)

    def bounds(self) -> tuple[int, int]:
        """(oldest held, newest); (n, n - 1) when empty."""
        found = self._ask("bounds").bounds
        if len(found) != 1:
            raise BadMessage(f"{len(found)} bounds, expected 1")
        return found[0].oldest, found[0].newest

    def before(self, sent_ns: int) -> Message[T_co]:
        """The newest message that had been sent at `sent_ns` (UTC), by its publisher's clock."""
        return self._one(self._ask("before", last=_index("sent_ns", sent_ns)))

    def between(self, first_ns: int, last_ns: int) -> list[Message[T_co]]:
        """Those held of all publishers that were sent from `first_ns` to `last_ns` (UTC), in the order of sending, by
        the clocks of their publishers' nodes."""
        spans = self._ask("span", first=_index("first_ns", first_ns), last=_index("last_ns", last_ns))
        streams = [self._range(span.oldest, span.newest, span.incarnation) for span in spans.bounds]
        self._unanswered = tuple(spans.unanswered)
        return list(heapq.merge(*streams, key=lambda message: message.sent_ns))

    def staleness_s(self) -> float:
        """How much older than what its publisher has now the newest of what the last pull found may have been, at most:
        the publisher's period plus the time the pull took, plus, at a mirror (`at="subscriber"` or a node that is not
        the publisher's), the way from the publisher to it. The period is the longest of the last 16 gaps between its
        messages (of those that this history shows), as measured where they are held. The way is the longest that
        messages of late took, by the clocks of the two nodes: it is as right as these agree, and never less than 0.

        Infinite when the publisher has left or has sent less than two messages. Asks nobody. Raises HistoryError when
        nothing was pulled yet.
        """
        measured = self._measured
        if measured is None:
            raise HistoryError("nothing was pulled yet, so nothing is known of how stale it is; pull first")
        return bound_s(*measured)

    # ---------------------------------------------------------------- asking

    def _range(self, first: int, last: int, incarnation: int) -> list[Message[T_co]]:
        messages: list[Message[T_co]] = []
        following: int | None = first
        while following is not None and following <= last:
            answer = self._ask("range", first=following, last=last, incarnation=incarnation)
            messages += self._messages(answer)
            if answer.following is not None and answer.following <= following:
                raise BadMessage("a range that does not go on")
            following = answer.following
            # Who was meant must not change half-way because another publisher came or left.
            incarnation = answer.publishers[0].incarnation if answer.publishers else incarnation
        return messages

    def _ask(self, kind: _Kind, *, first: int = 0, last: int = 0, incarnation: int | None = None) -> PullAnswer:
        if self._closed:
            raise ClosedError("history")
        query = Pull(
            tag=self._tag.name, kind=kind, first=first, last=last, every=self._every, depth=self._depth,
            size=self._size, whole=self._place == "subscriber",
            publisher=self._incarnation if incarnation is None else incarnation,
        )  # fmt: skip
        began = time.perf_counter()
        request = PullHistory(id=0, at=self._place, query=query)
        pulled, fds = self._attachment.connection.call_for_fds(request, HistoryPulled, PATIENCE_S)
        answer = service.decode_untrusted(_bytes_of(pulled, fds), PullAnswer)
        self._unanswered = tuple(answer.unanswered)
        if kind != "span":
            self._measured = (answer.period_ns, time.perf_counter() - began + answer.way_ns / 1e9)
        return answer

    def _one(self, answer: PullAnswer) -> Message[T_co]:
        if len(answer.messages) != 1:
            raise BadMessage(f"{len(answer.messages)} messages, expected 1")
        return self._messages(answer)[0]

    def _messages(self, answer: PullAnswer) -> list[Message[T_co]]:
        publishers = {info.incarnation: info for info in answer.publishers}
        now_ns = _core.utc_ns()
        # What did not come scaled is scaled here.
        decode = self._scaling if self._size is not None and answer.size is None else self._decode
        unnamed = {pulled.incarnation for pulled in answer.messages} - publishers.keys()
        if unnamed:
            raise BadMessage(f"messages of publishers {unnamed}, who are not named")
        return [
            _core.make_pulled_message(
                pulled.payload if decode is None else decode(pulled.payload), tag=self._tag.name,
                publisher=publishers[pulled.incarnation], seq=pulled.seq, event_ns=pulled.event_ns,
                sent_ns=pulled.sent_ns, received_ns=now_ns, lost=pulled.lost, discardable=pulled.discardable,
            )
            for pulled in answer.messages
        ]  # fmt: skip

    # ---------------------------------------------------------------- end

    def close(self) -> None:
        """Let go of the buffer, if one was held for it. A second call does nothing."""
        self._closed = True
        for ending in (self._buffer, self.declared):
            if ending is not None:
                ending()

    def __repr__(self) -> str:
        return f"<RemoteHistory of {self._tag.name!r} at {self._place}{' closed' if self._closed else ''}>"


def _bytes_of(pulled: HistoryPulled, fds: list[Descriptor]) -> bytes:
    """Raises BadMessage."""
    if pulled.answer or not pulled.size:
        return pulled.answer
    if len(fds) != 1:
        raise BadMessage(f"an answer came with {len(fds)} descriptors, not 1")
    found = os.pread(fds[0].fileno(), pulled.size, 0)
    if len(found) != pulled.size:
        raise BadMessage(f"an answer of {pulled.size} bytes came with {len(found)}")
    return found


def _index(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not 0 <= value <= _LAST:
        raise ValueError(f"{name} is from 0 to 2**64 - 1, not {value}")
    return value
