"""How often a publisher sends: a rate from its own sequence numbers and send times. Pure: samples in, figures out.

Nothing here depends on what a tool managed to receive, so neither a slow terminal nor a busy machine can lower the
figure, as it does for tools that count arrivals (ros2cli issue 871).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

FADING = 2.0
"""Silence longer than this many of the longest intervals seen is time without messages, not the next interval."""


class Sample(msgspec.Struct, frozen=True):
    """A publisher's newest message at some moment: its number and its send time."""

    seq: int
    sent_ns: int


NOTHING = Sample(-1, 0)
"""It has not sent anything."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one publisher over some time.

    `sent` and `rate_hz` are by its sequence numbers. The intervals are of those messages whose send times its history
    still held: `intervals` of them. `rate_hz` is None when there has been one message only.
    """

    sent: int
    rate_hz: float | None
    seconds: float
    silent_ns: int | None
    intervals: int
    interval_min_ns: int | None
    interval_mean_ns: float | None
    interval_max_ns: int | None
    interval_std_ns: float | None


class Intervals:
    """Running minimum, maximum, mean and deviation (Welford's way: one pass, no list kept)."""

    def __init__(self) -> None:
        self.count = 0
        self.shortest: int | None = None
        self.longest: int | None = None
        self._mean = 0.0
        self._squares = 0.0

    def add(self, gap_ns: int) -> None:
        self.count += 1
        self.shortest = gap_ns if self.shortest is None else min(self.shortest, gap_ns)
        self.longest = gap_ns if self.longest is None else max(self.longest, gap_ns)
        away = gap_ns - self._mean
        self._mean += away / self.count
        self._squares += away * (gap_ns - self._mean)

    @property
    def mean(self) -> float | None:
        return self._mean if self.count else None

    @property
    def deviation(self) -> float | None:
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else None


class Stretch:
    """Some time of one publisher's life, from the message that was its newest when it began."""

    def __init__(self, before: Sample, begin_ns: int) -> None:
        self.before = before
        self.begin_ns = begin_ns
        self._newest = before
        self._first_ns: int | None = None
        self._intervals = Intervals()

    def add(self, newest: Sample, times_ns: Sequence[int], now_ns: int) -> None:
        """The publisher got to `newest`; `times_ns` are the send times, in order, of the last messages up to it: of all
        that are new, or of those the history kept."""
        new = newest.seq - self._newest.seq
        if new <= 0:
            return
        whole = len(times_ns) == new
        if self._newest is self.before:
            if whole:
                self._first_ns = times_ns[0]
            # A pause that began long before this time says nothing of it, unless one message is all there is.
            recent = self.begin_ns - self.before.sent_ns <= now_ns - self.begin_ns
            whole = whole and self.before.seq >= 0 and (recent or new == 1)
        times = [self._newest.sent_ns, *times_ns] if whole else times_ns
        for earlier, later in pairwise(times):
            self._intervals.add(later - earlier)
        self._newest = newest

    def figures(self, now_ns: int) -> Figures:
        sent = self._newest.seq - self.before.seq
        intervals = self._intervals
        return Figures(
            sent=sent, rate_hz=self._rate(sent, now_ns), seconds=(now_ns - self.begin_ns) / 1e9,
            silent_ns=max(0, now_ns - self._newest.sent_ns) if self._newest.seq >= 0 else None,
            intervals=intervals.count, interval_min_ns=intervals.shortest, interval_mean_ns=intervals.mean,
            interval_max_ns=intervals.longest, interval_std_ns=intervals.deviation,
        )  # fmt: skip

    def _rate(self, sent: int, now_ns: int) -> float | None:
        """Messages over the time between send times, so that the edges of a window add no error."""
        if sent <= 0:
            return 0.0
        recent = self.begin_ns - self.before.sent_ns <= now_ns - self.begin_ns
        if self.before.seq >= 0 and (recent or sent == 1):
            count, start = sent, self.before.sent_ns
        elif self._first_ns is not None:
            count, start = sent - 1, self._first_ns
        else:
            count, start = sent, self.begin_ns
        end = self._newest.sent_ns
        usual = self._intervals.longest if self._intervals.longest is not None else (end - start) / max(1, count)
        if count and now_ns - end > FADING * usual:
            end = now_ns
        return count * 1e9 / (end - start) if count and end > start else None
