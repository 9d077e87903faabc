"""In what environment a tag's streams live, from what receiving nodes counted lately. Pure.

What a look brought (`looks`) is kept for a while (`LOOKS`), whichever transport carried it, so that a change of
transport forgets nothing. When the last look or two say clearly something else than those before (`looks.CHANGED`), the
older ones are forgotten: the environment is another one. A stream that stops is in the environment that it was in:
looks in which nothing came count only when it goes on soon (`PAUSE`), and a rate falls when each of the last looks says
so (`SLOWER`): in one of them the stream may have stopped, and gone on in the next. A transport whose receivers see no
losses (tcp repairs them in the kernel) adds messages and no losses; for those counts what the senders' kernels sent
again. Where nobody tells that, its looks are left out of the loss, which stays what it was.

The bandwidth is that of the thinnest line on the way, the senders' and the receivers', less what other streams take of
it, and of several publishers each has its share. Who only sends is no receiver. While a sender's line is busy, a longer
delay is no longer way.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from ringcast.adapt import lines
from ringcast.adapt.features import HEADS_BYTES
from ringcast.adapt.lines import Left, Line, Taken
from ringcast.adapt.looks import (
    OTHER_RATE,
    Key,
    Look,
    between,
    burst_of,
    by_key,
    differ,
    rate,
    taken,
    total,
    usual_rate,
)
from ringcast.control.between.choosing import Counted, Heard

LOOKS = 30
ENDLESS_MBIT = 1e6
"""A line that does not say how fast it is, as models are told of it."""
LEAST_RATE = 1.0
"""Bytes per second: no line that carries anything is slower, whatever is told of it."""
LEAST_DELAY_US = 50.0
"""Until a reader is awake it takes so long on any line: a shorter way is no other environment."""
LATELY = (1, 2)
"""So many looks are compared with those before them."""
SLOWER = 3
"""Looks that must say so before a stream has become slow."""
EMPTIES_S = 10.0
"""After a line was busy, its queue has to empty, and nodes believe a shorter round trip after some rounds: what they
say until then may be of the queue."""
PAUSE = 5
"""So many looks without a message are part of a slow stream. More are a pause, which says nothing of its rate."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """As models are told of it. `messages` is what the loss was seen on: few say little."""

    receivers: int
    loss_percent: float
    burst: float
    rate_hz: float
    payload_bytes: float
    delay_us: float
    bandwidth_mbit: float
    messages: int = 0

    def numbers(self) -> dict[str, float]:
        """As models know lines: each packet is on it for as long as it is long. A queue with a rate lets a few packets
        pass at once, so where messages come sooner than the line could carry one, that is how fast it is for them."""
        line, soonest = self.bandwidth_mbit, 8 * (self.payload_bytes + HEADS_BYTES) / self.delay_us
        return {
            "receivers": self.receivers, "loss_percent": self.loss_percent, "burst": self.burst,
            "rate_hz": self.rate_hz, "payload_bytes": self.payload_bytes, "delay_us": self.delay_us,
            "bandwidth_mbit": line if line > soonest else soonest,
        }  # fmt: skip

    def __str__(self) -> str:
        line = f", {self.bandwidth_mbit:g} Mbit/s" if self.bandwidth_mbit < ENDLESS_MBIT else ""
        bursts = f" in bursts of {self.burst:.1f}" if self.burst > 1.05 else ""
        return (
            f"{self.receivers} receivers, {self.loss_percent:.2g} % loss{bursts}, {self.rate_hz:.3g} Hz of "
            f"{self.payload_bytes:.0f} B, {self.delay_us:.0f} us{line}"
        )


class Cost(NamedTuple):
    """`delay_ns` of all messages together; 0 where clocks do not say."""

    messages: int
    lost: int
    delay_ns: int

    @property
    def delivered(self) -> float:
        """Percent."""
        return 100 * self.messages / (self.messages + self.lost) if self.messages else 0.0

    @property
    def latency_ms(self) -> float:
        return 1e-6 * self.delay_ns / self.messages if self.messages else 0.0


class Surroundings:
    """Of one tag. Give it every look; it knows the environment."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._most = looks
        self._before: dict[str, tuple[float, dict[Key, Counted]]] = {}
        self._looks: dict[str, deque[Look]] = {}
        self._sent_before: dict[str, dict[Key, Counted]] = {}
        self._sent: deque[Look] = deque(maxlen=looks)
        """Of all senders together, losses alone."""
        self._ways: dict[str, tuple[float, float]] = {}
        self._empty: list[dict[str, Look]] = []
        """Looks in which nothing came, since something did."""
        self._last: list[Look] = []
        """Of those who answered in the last look, if something came."""
        self._lines: dict[str, Line] = {}
        """Of nodes that send, as of the last look."""
        self._full_s = -math.inf
        """When a look last said that one of these is busy."""
        self._taken: dict[str, list[Taken]] = {}
        """By receiver, in the last look in which something came: what leaves by lines is of the last moment too."""
        self.carried_by: set[str] = set()
        """Transports of the channels in the last look: a pinned one, or one that is left, is not what was chosen."""

    def look(
        self, now_s: float, heard: Iterable[Heard], answered_s: Mapping[str, float] | None = None,
        silent: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Nodes that are not among them receive nothing any more, but for those that were asked and are `silent`: they
        are where they were. `answered_s` is when each one counted, where that is another time than `now_s`."""
        heard, answered_s, was_busy = list(heard), answered_s or {}, self.is_busy
        self._look_at_senders({one.node: by_key(one.sent) for one in heard if one.sent}, silent)
        self._lines = {node: line for node, line in self._lines.items() if node in silent}
        self._lines |= {one.node: _line(one) for one in heard if one.line > 0}
        if was_busy or self.is_busy:
            self._full_s = now_s
        queued = now_s - self._full_s <= EMPTIES_S
        told = {one.node: one for one in heard if one.channels}
        self.carried_by = {channel.transport for one in told.values() for channel in one.channels}
        for gone in self._before.keys() - told.keys() - set(silent):
            del self._before[gone], self._looks[gone], self._ways[gone]
            self._taken.pop(gone, None)
        found: dict[str, Look] = {}
        for node, one in told.items():
            channels, at_s = by_key(one.channels), answered_s.get(node, now_s)
            if node in self._before:
                then_s, before = self._before[node]
                found[node] = between(at_s - then_s, before, channels)
                if took := taken(at_s - then_s, before, channels):
                    self._taken[node] = took
            else:
                self._looks[node] = deque(maxlen=self._most)
            self._before[node] = at_s, channels
            before_s, _ = self._ways.get(node, (0.0, 0.0))
            bandwidth = max(one.bandwidth, LEAST_RATE) if one.bandwidth > 0 else 0.0
            self._ways[node] = _round_trip_s(before_s, one.round_trip_s, queued), bandwidth
        came = any(look.messages or look.seen for look in found.values())
        self._last = list(found.values()) if came else []
        if came:
            # Of a pause nothing counts but that it was.
            paused = [{node: look._replace(elapsed_s=0.0) for node, look in looks.items()} for looks in self._empty[:1]]
            for looks in (*(self._empty if len(self._empty) <= PAUSE else paused), found):
                for node in looks.keys() & self._looks.keys():
                    self._looks[node].append(looks[node])
            self._empty = []
            self._forget_another()
        elif found:
            self._empty = [*self._empty, found][: PAUSE + 1]

    def _look_at_senders(self, told: dict[str, dict[Key, Counted]], silent: Collection[str]) -> None:
        looks = [between(0.0, self._sent_before.get(node, {}), streams) for node, streams in told.items()]
        self._sent_before = {node: of for node, of in self._sent_before.items() if node in silent} | told
        if looks:
            found = total(looks)
            self._sent.append(Look(0.0, 0, 0, found.seen, found.skipped, found.gaps, 0))

    def _forget_another(self) -> None:
        """All nodes are looked at together: few messages say little."""
        for lately in LATELY:
            every = [*self._looks.values(), self._sent]
            old = [look for looks in every for look in list(looks)[:-lately]]
            new = [look for looks in every for look in list(looks)[-lately:]]
            if old and new and differ(total(old), total(new)):
                self._keep(lately)
                return
        if lately := self._slower():
            self._keep(lately)

    def _keep(self, lately: int) -> None:
        for node, looks in self._looks.items():
            self._looks[node] = deque(list(looks)[-lately:], maxlen=self._most)
        self._sent = deque(list(self._sent)[-lately:], maxlen=self._most)

    def _slower(self) -> int:
        """How many of the last looks have a lower rate than those before; 0 if they do not. A stream may have stopped
        during a look, and gone on during another: three in which something came must say so."""
        rates: list[float] = []
        for at in range(1, max(map(len, self._looks.values()), default=0)):
            look = total([looks[-at] for looks in self._looks.values() if len(looks) >= at])
            if not look.messages:
                continue
            rates.append(rate(look))
            if len(rates) == SLOWER:
                before = [look for looks in self._looks.values() for look in list(looks)[:-at]]
                return at if before and max(rates) * OTHER_RATE < rate(total(before)) else 0
        return 0

    def cost(self) -> Cost:
        """What the stream cost between the last two looks, all receivers together."""
        return Cost(*(sum(getattr(look, name) for look in self._last) for name in Cost._fields))

    @property
    def paused(self) -> bool:
        """Whether nothing came for so long that the stream is not merely slow."""
        return len(self._empty) > PAUSE

    @property
    def is_busy(self) -> bool:
        """Whether messages may wait in the queue of a sender's line."""
        return any(line.is_busy for line in self._lines.values())

    def line_is(self, one: Heard) -> None:
        """Of one sender, between looks."""
        if one.line > 0:
            self._lines[one.node] = _line(one)

    def line(self) -> float:
        """Bytes per second that are left for the tag of its senders' lines; 0 where nobody told of them, or nothing
        came yet."""
        found = self._left()
        return found.rate if found is not None else 0.0

    def _left(self) -> Left | None:
        if not self._taken:
            return None
        streams = self._streams()
        every = [one for of in self._taken.values() for one in of]
        return lines.thinnest(self._lines.values(), lines.own(every, streams, self._loss()), streams)

    def _streams(self) -> int:
        """Of all publishers together, as of the last look: each sends its share of what comes, and has its share of
        lines."""
        return max((looks[-1].streams for looks in self._looks.values() if looks), default=1) or 1

    def _loss(self) -> float:
        losses = total([*(look for looks in self._looks.values() for look in looks), *self._sent])
        return losses.skipped / losses.seen if losses.seen else 0.0

    def environment(self) -> Environment | None:
        """None while nothing came."""
        looks = [look for node in self._looks.values() for look in node]
        messages, elapsed = sum(look.messages for look in looks), sum(look.elapsed_s for look in looks)
        if not messages or elapsed <= 0:
            return None
        losses, streams, left = total([*looks, *self._sent]), self._streams(), self._left()
        bandwidths = [one / streams for _, one in self._ways.values() if one > 0]
        bandwidths += [left.each] if left is not None else []
        return Environment(
            receivers=len(self._looks),
            loss_percent=100 * losses.skipped / losses.seen if losses.seen else 0.0,
            burst=burst_of(losses),
            rate_hz=max(messages / elapsed, usual_rate(looks)) / streams,
            payload_bytes=sum(look.bytes for look in looks) / messages,
            delay_us=max(1e6 * max(round_trip for round_trip, _ in self._ways.values()) / 2, LEAST_DELAY_US),
            bandwidth_mbit=8e-6 * min(bandwidths) if bandwidths else ENDLESS_MBIT,
            messages=losses.seen,
        )


def _round_trip_s(before_s: float, now_s: float, queued: bool) -> float:
    """Behind a busy line messages wait in its queue: the way is as long as it was at its shortest since then. 0 is not
    known."""
    if not (before_s and now_s):
        return before_s or now_s
    return min(before_s, now_s) if queued else now_s


def _line(one: Heard) -> Line:
    return Line(max(one.line, LEAST_RATE), one.leaves, one.streams)
