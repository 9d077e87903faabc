"""Reads rings for a pull request: a `Pull` and the rings of a node become a `PullAnswer`.

Runs in a thread of its own while publishers write. Invariants: at most one page of payloads is copied, however long the
range is; a message that is overwritten during the read is reported as lost, and never comes out damaged.
Must not know where the rings came from, nor who asks.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ringcast.control.service import Bounds, Head, Pull, PullAnswer, Pulled
from ringcast.errors import Empty, HistoryError, MessageTooLarge, Overwritten
from ringcast.message import Message
from ringcast.model.identity import PublisherInfo
from ringcast.model.staleness import GAPS, longest_gap_ns
from ringcast.scaling.temporal import first_due

PAGE_BYTES = 16 * 1024 * 1024
PAGE_MESSAGES = 65536
MAX_MESSAGE_BYTES = 60 * 1024 * 1024
"""Less than what one answer between daemons may hold."""
_ATTEMPTS = 8


class RingView(Protocol):
    """A RingHistory with one ring, whose messages are not decoded."""

    def latest(self, back: int = 0, copy: bool = True) -> Message[bytes]: ...
    def at(self, seq: int, incarnation: int = 0, copy: bool = True) -> Message[bytes]: ...
    def range(self, first: int, last: int, incarnation: int = 0) -> list[Message[bytes]]: ...
    def bounds(self, incarnation: int = 0) -> tuple[int, int]: ...


class Held(NamedTuple):
    """A ring to read. Of the stream, only numbers that are multiples of `step` are looked at."""

    info: PublisherInfo
    alive: bool
    step: int
    view: RingView
    capacity_bytes: int
    way_ns: int = 0
    """Of a mirror: how far behind its publisher it may be."""


def step_of(every: int, ring_every: int) -> int:
    """What is left when a stream that was scaled on its way is scaled again."""
    return math.lcm(every, ring_every)


def limit_of(depth: int, step: int, ring_every: int) -> int:
    """How many records of a ring hold `depth` messages of the scaled stream; 0 is all."""
    return depth * (step // ring_every)


def whose(tag: str, publishers: Iterable[tuple[PublisherInfo, bool]]) -> PublisherInfo:
    """Whose numbers are meant when nobody said: the only publisher's, or the only one's that is alive.

    Raises Empty, HistoryError.
    """
    known = list(publishers)
    if not known:
        raise Empty(f"nobody published on {tag!r} there, so there is no history")
    alive = [info for info, lives in known if lives]
    if len(known) == 1:
        return known[0][0]
    if len(alive) != 1:
        names = ", ".join(map(str, alive)) or "none of them alive"
        raise HistoryError(
            f"{len(known)} publishers number their messages on {tag!r} ({names}); say whose you mean with "
            "tag.history(publisher=...), one of tag.publishers(left=True)"
        )
    return alive[0]


def nth_newest(heads: Iterable[Head], back: int) -> Head:
    """By send time over all publishers; of one publisher's with equal times the higher number is newer.

    Raises Empty, HistoryError.
    """
    newest = heapq.nlargest(back + 1, heads, key=lambda head: (head.sent_ns, head.incarnation, head.seq))
    if not newest:
        raise Empty
    if len(newest) <= back:
        raise HistoryError(f"the history does not go back {back} messages; it holds {len(newest)}")
    return newest[back]


def read(held: Sequence[Held], query: Pull) -> PullAnswer:
    """Raises Empty, Overwritten, NotYet, HistoryError, CorruptRing, MessageTooLarge."""
    return _KINDS[query.kind](held, query)


def walk(held: Held) -> Iterator[Head]:
    """The messages held, newest first. Publishers go on writing, and what they overwrite is not there any more."""
    seq = _floor(held.view.bounds()[1], held.step)
    while seq >= held.view.bounds()[0]:
        try:
            message = held.view.at(seq, copy=False)
        except HistoryError:  # a gap: messages were lost on the way to a mirror
            below = _below(held.view, seq)
            if below is None:
                return
            seq = _floor(below, held.step)
            continue
        yield Head(held.info.incarnation, seq, message.sent_ns)
        seq -= held.step


# ------------------------------------------------------------------ kinds of queries


def _latest(held: Sequence[Held], query: Pull) -> PullAnswer:
    if len(held) == 1 and held[0].step == 1:
        return _one(held[0], held[0].view.latest(query.first))
    return _found(held, lambda: nth_newest(_newest(held, query.first + 1, 0), query.first))


def _before(held: Sequence[Held], query: Pull) -> PullAnswer:
    def newest_by_then() -> Head:
        try:
            return nth_newest(_newest(held, 1, query.last), 0)
        except Empty:
            raise HistoryError(f"nothing that is held was sent by {query.last} ns (UTC)") from None

    return _found(held, newest_by_then)


def _at(held: Sequence[Held], query: Pull) -> PullAnswer:
    ring = _only(held, query)
    _check_due(ring, query.first)
    return _one(ring, ring.view.at(query.first))


def _range(held: Sequence[Held], query: Pull) -> PullAnswer:
    ring = _only(held, query)
    expected = first_due(query.first, ring.step)
    messages: list[Pulled] = []
    size = 0
    following: int | None = None
    for message in _ascending(ring, query.first, query.last):
        if message.seq % ring.step:
            continue
        if messages and (size >= PAGE_BYTES or len(messages) == PAGE_MESSAGES):
            following = expected
            break
        messages.append(_pulled(ring, message, (message.seq - expected) // ring.step))
        size += len(messages[-1].payload)
        expected = message.seq + ring.step
    return PullAnswer(
        publishers=[ring.info], messages=messages, following=following, period_ns=period_ns(ring), way_ns=ring.way_ns
    )


def _bounds(held: Sequence[Held], query: Pull) -> PullAnswer:
    ring = _only(held, query)
    oldest, newest = ring.view.bounds()
    if ring.step > 1:
        oldest, newest = first_due(oldest, ring.step), _floor(newest, ring.step)
    found = Bounds(ring.info.incarnation, oldest, max(newest, oldest - 1))
    return PullAnswer(publishers=[ring.info], bounds=[found], period_ns=period_ns(ring), way_ns=ring.way_ns)


def _span(held: Sequence[Held], query: Pull) -> PullAnswer:
    bounds = []
    for ring in held:
        late_enough = itertools.takewhile(lambda head: head.sent_ns >= query.first, walk(ring))
        numbers = [head.seq for head in late_enough if head.sent_ns <= query.last]
        if numbers:
            bounds.append(Bounds(ring.info.incarnation, numbers[-1], numbers[0]))
    return PullAnswer(publishers=[ring.info for ring in held], bounds=bounds)


def _heads(held: Sequence[Held], query: Pull) -> PullAnswer:
    heads = list(_newest(held, query.first, query.last))
    return PullAnswer(publishers=[ring.info for ring in held], heads=heads)


_KINDS: dict[str, Callable[[Sequence[Held], Pull], PullAnswer]] = {
    "latest": _latest, "before": _before, "at": _at, "range": _range, "bounds": _bounds, "span": _span,
    "heads": _heads,
}  # fmt: skip


# ------------------------------------------------------------------ parts


def period_ns(held: Held) -> int:
    """The longest of the last gaps between its messages; 0 when its publisher left or there are none."""
    return longest_gap_ns(head.sent_ns for head in itertools.islice(walk(held), GAPS + 1)) if held.alive else 0


def _ascending(ring: Held, first: int, last: int) -> Iterator[Message[bytes]]:
    """Those that are there now, oldest first. A small ring is read in one go, which few publishers outrun; of a large
    one a page is taken message by message."""
    if ring.capacity_bytes <= PAGE_BYTES:
        yield from ring.view.range(first, last)
        return
    oldest, newest = ring.view.bounds()
    seq, last = first_due(max(first, oldest), ring.step), min(last, newest)
    while seq <= last:
        try:
            yield ring.view.at(seq)
        except HistoryError:  # a gap, or overwritten just now
            above = _above(ring.view, seq)
            if above is None:
                return
            seq = first_due(above, ring.step)
        else:
            seq += ring.step


def _newest(held: Iterable[Held], count: int, until_ns: int) -> Iterator[Head]:
    for ring in held:
        heads = walk(ring)
        if until_ns:
            heads = itertools.dropwhile(lambda head: head.sent_ns > until_ns, heads)
        yield from itertools.islice(heads, min(count, PAGE_MESSAGES))


def _found(held: Sequence[Held], choose: Callable[[], Head]) -> PullAnswer:
    """Read what was chosen; a publisher may overwrite it in between, then choose again."""
    for _ in range(_ATTEMPTS):
        head = choose()
        ring = next(ring for ring in held if ring.info.incarnation == head.incarnation)
        try:
            return _one(ring, ring.view.at(head.seq))
        except Overwritten:
            continue
    raise Empty("the publisher writes faster than its history can be read; use a larger depth")


def _only(held: Sequence[Held], query: Pull) -> Held:
    info = whose(query.tag, ((ring.info, ring.alive) for ring in held))
    return next(ring for ring in held if ring.info is info)


def _check_due(ring: Held, seq: int) -> None:
    if seq % ring.step:
        oldest, newest = ring.view.bounds()
        raise HistoryError(
            f"message {seq} is not part of this history, which has every {ring.step}th",
            seq=seq, oldest=oldest, newest=newest,
        )  # fmt: skip


def _one(ring: Held, message: Message[bytes]) -> PullAnswer:
    return PullAnswer(
        publishers=[ring.info], messages=[_pulled(ring, message, 0)], period_ns=period_ns(ring), way_ns=ring.way_ns
    )


def _pulled(ring: Held, message: Message[bytes], lost: int) -> Pulled:
    if len(message.data) > MAX_MESSAGE_BYTES:
        raise MessageTooLarge(len(message.data), MAX_MESSAGE_BYTES)
    return Pulled(
        ring.info.incarnation, message.seq, message.event_ns, message.sent_ns, message.discardable, lost, message.data
    )


def _below(view: RingView, seq: int) -> int | None:
    """The largest number held below `seq`."""
    return _around(view, seq)[0]


def _above(view: RingView, seq: int) -> int | None:
    """The smallest number held above `seq`."""
    return _around(view, seq + 1)[1]


def _around(view: RingView, seq: int) -> tuple[int | None, int | None]:
    """The numbers held next to `seq`: below it, and from it on. They fall as one goes back, so halving finds them."""
    near, far = 0, max(0, view.bounds()[1] - seq + 1)
    below: int | None = None
    above: int | None = None
    while near <= far:
        back = (near + far) // 2
        try:
            number = view.latest(back, copy=False).seq
        except HistoryError:  # not so far back
            far = back - 1
            continue
        if number < seq:
            below, far = number, back - 1
        else:
            above, near = number, back + 1
    return below, above


def _floor(seq: int, step: int) -> int:
    return seq - seq % step
