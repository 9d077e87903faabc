"""Watching publishers at work without receiving anything: what `hz` and `bw` measure, and the rate in `tags`.

Numbers and send times are read from the publishers' rings, byte counts from their counters in shared memory (through
the daemon's listing). Invariant: a slow observer misses intervals, never messages, because the count is the
publisher's own.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ringcast.cli.parts.window import NOTHING, Figures, Sample, Stretch
from ringcast.errors import CodecError, HistoryError, UnknownTag
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import is_pattern

if TYPE_CHECKING:
    from ringcast.control.status import PublisherStatus
    from ringcast.history import History
    from ringcast.session import Session
    from ringcast.tag import Tag

MOST_TIMES = 20_000
"""How many send times are read of one publisher at one look."""
_RECENT_MESSAGES = 100
RECENT_NS = 10_000_000_000
"""Messages older than this do not count for a rate."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One publisher over one time. `bytes` is what it sent in that time, `message_bytes` their mean size."""

    tag: str
    publisher: PublisherInfo
    alive: bool
    figures: Figures
    bytes: int
    message_bytes: float | None
    bytes_per_s: float | None


class _Publisher:
    """One publisher being watched: the window that runs, and the whole time."""

    def __init__(self, status: PublisherStatus, history: History, before: Sample, begin_ns: int) -> None:
        self.status = status
        self.whole = Stretch(before, begin_ns)
        self.window = Stretch(before, begin_ns)
        self._history = history
        self._newest = before
        self._counted = self._counted_first = (0, 0) if before is NOTHING else _counted(status)

    def look(self, status: PublisherStatus, now_ns: int) -> Observation:
        """Close the running window and begin the next."""
        self.status = status
        newest = sample(self._history, status)
        times = send_times(self._history, newest, newest.seq - self._newest.seq)
        for stretch in (self.whole, self.window):
            stretch.add(newest, times, now_ns)
        seen = self._observation(self.window, self._counted, now_ns)
        self._counted = _counted(status)
        self._newest = newest
        self.window = Stretch(newest, now_ns)
        return seen

    def total(self, now_ns: int) -> Observation:
        return self._observation(self.whole, self._counted_first, now_ns)

    def _observation(self, stretch: Stretch, before: tuple[int, int], now_ns: int) -> Observation:
        figures = stretch.figures(now_ns)
        messages, total = (now - then for now, then in zip(_counted(self.status), before, strict=True))
        mean = total / messages if messages > 0 else None
        rate = None if figures.rate_hz is None or mean is None else figures.rate_hz * mean
        return Observation(
            tag=self.status.info.tag, publisher=self.status.info, alive=self.status.alive, figures=figures,
            bytes=total, message_bytes=mean, bytes_per_s=0.0 if messages == 0 else rate,
        )  # fmt: skip


class Observer:
    """Watches the publishers of the tags that match. Raises UnknownTag for a plain name that nobody created."""

    def __init__(self, session: Session, pattern: str) -> None:
        self._session = session
        self._pattern = pattern
        self._tags: dict[str, Tag] = {}
        self.unreadable: dict[str, CodecError] = {}
        """Tags that cannot be watched from here, and why."""
        self._publishers: dict[int, _Publisher] = {}
        self._looked_ns: int | None = None
        if not session.tags(pattern) and not is_pattern(pattern):
            raise UnknownTag(pattern)
        self.look()

    def look(self) -> list[Observation]:
        """What happened since the last look, by publisher; one that left shows for the last time after it did."""
        seen = []
        for tag in self._matching():
            for status in tag.publishers(left=True, local=True):
                if status.info.incarnation not in self._publishers:
                    self._discover(tag, status)
                    if self._looked_ns is None:
                        continue
                observation = self._publishers[status.info.incarnation].look(status, time.time_ns())
                if status.alive or observation.figures.sent:
                    seen.append(observation)
        self._looked_ns = time.time_ns()
        return seen

    def totals(self) -> list[Observation]:
        """The same since the observer was made."""
        now_ns = self._looked_ns or time.time_ns()
        totals = [publisher.total(now_ns) for publisher in self._publishers.values()]
        return [total for total in totals if total.alive or total.figures.sent]

    def _matching(self) -> list[Tag]:
        for row in self._session.tags(self._pattern):
            if row.name not in self._tags and row.name not in self.unreadable:
                try:
                    self._tags[row.name] = self._session.tag(row.name, create=False)
                except UnknownTag:  # deleted a moment ago
                    continue
                except CodecError as exc:
                    self.unreadable[row.name] = exc
        return list(self._tags.values())

    def _discover(self, tag: Tag, status: PublisherStatus) -> None:
        history = tag.local_history(publisher=status)
        if self._looked_ns is None:
            begun = _Publisher(status, history, sample(history, status), time.time_ns())
        else:  # born since the last look: all it ever sent is new
            begun = _Publisher(status, history, NOTHING, self._looked_ns)
        self._publishers[status.info.incarnation] = begun


def _counted(status: PublisherStatus) -> tuple[int, int]:
    return status.counters["sent"], status.counters["bytes"]


def sample(history: History, status: PublisherStatus) -> Sample:
    """A publisher's newest message: from its ring, where number and time belong together for certain, else from its
    counters."""
    try:
        message = history.latest(copy=False)
    except (HistoryError, CodecError):
        return Sample(status.counters["sent"] - 1, status.last_sent_ns)
    return Sample(message.seq, message.sent_ns)


def send_times(history: History, newest: Sample, wanted: int) -> list[int]:
    """Send times of the last messages up to `newest`, oldest first: as many as are wanted and still held."""
    times: list[int] = []
    try:
        for seq in range(newest.seq, max(-1, newest.seq - min(wanted, MOST_TIMES)), -1):
            times.append(history.at(seq, copy=False).sent_ns)
    except (HistoryError, CodecError):  # older ones are gone, or nothing of it can be read from here
        pass
    times.reverse()
    return times


def rate_lately(tag: Tag, now_ns: int) -> float | None:
    """How often the tag's publishers send together, by what their rings hold of the last seconds. None: not known."""
    total: float | None = None
    for status in tag.publishers(local=True):
        with tag.local_history(publisher=status) as history:
            newest = sample(history, status)
            times = [at for at in send_times(history, newest, _RECENT_MESSAGES) if now_ns - at < RECENT_NS]
        if len(times) > 1:
            first = newest.seq - len(times) + 1
            stretch = Stretch(Sample(first, times[0]), times[0])
            stretch.add(newest, times[1:], now_ns)
            total = (total or 0.0) + (stretch.figures(now_ns).rate_hz or 0.0)
        elif newest.seq >= 0 and now_ns - newest.sent_ns >= RECENT_NS:
            total = total or 0.0
    return total
