"""In what environment a tag's streams live, from what receiving nodes counted lately. Pure.

Counters only grow, so two looks give what happened between them; a channel that was opened again counts from 0. What a
look brought is kept for a while (`LOOKS`), whichever transport carried it, so that a change of transport forgets
nothing. When the last look or two say clearly something else than those before (`CHANGED`), the older ones are
forgotten: the environment is another one. A stream that stops is in the environment that it was in: looks in which
nothing came count only when it goes on soon (`PAUSE`), and a rate falls when each of the last looks says so: in one of
them the stream may have stopped. A transport whose receivers see no losses (tcp repairs them in the kernel)
adds messages and no losses; for those counts what the senders' kernels sent again. Where nobody tells that, its looks
are left out of the loss, which stays what it was.

Networks lose packets in bursts, and receivers see runs of messages: the more packets a transport has between two
messages, the shorter the runs. How many there were is counted, so the length of bursts is told in packets, and is the
same whatever carries the stream (`_burst`).

The bandwidth is that of the thinnest line on the way, the senders' and the receivers', less what other streams take of
it. Who only sends is no receiver. While a sender's line is busy, a longer delay is no longer way.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

import msgspec

from ringcast.adapt import lines
from ringcast.adapt.features import HEADS_BYTES
from ringcast.adapt.lines import Line, Taken
from ringcast.control.between.choosing import Counted, Heard

LOOKS = 30
ENDLESS_MBIT = 1e6
"""A line that does not say how fast it is, as models are told of it."""
LEAST_BURST = 1.0
LEAST_DELAY_US = 50.0
"""Until a reader is awake it takes so long on any line: a shorter way is no other environment."""
LATELY = (1, 2)
"""So many looks are compared with those before them."""
CHANGED = 5.0
"""Standard deviations by which a loss must differ to be another one."""
OTHER_RATE = 1.5
"""A rate or a size that differs by this factor is another one."""
SLOWER = 3
"""Looks that must say so before a stream has become slow."""
PAUSE = 5
"""So many looks without a message are part of a slow stream. More are a pause, which says nothing of its rate."""
ENOUGH_FOR_A_RATE = 10
"""Messages in a look."""
ENOUGH_LOST = 20
"""Fewer say nothing of the length of bursts."""
BY_CHANCE = 2.0
"""Standard deviations by which losses in a row must be more than chance brings to be a burst."""
LONGEST_BURST = 100.0


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


_Key = tuple[int, str, int]


class _Look(NamedTuple):
    """What happened between two looks, at one node."""

    elapsed_s: float
    messages: int
    bytes: int
    seen: int
    """Messages that came or did not, where losses are seen."""
    skipped: int
    gaps: int
    streams: int
    lost: int = 0
    """In the end, after all repairs."""
    delay_ns: int = 0
    heard: int = 0
    """Packets that came, of those streams whose losses are seen and whose packets are counted; `of` so many messages
    that came or did not."""
    of: int = 0


class Met(NamedTuple):
    """What one channel met between two looks. None where losses are hidden."""

    loss_percent: float | None
    burst: float | None
    rate_hz: float
    payload_bytes: float


def met(elapsed_s: float, before: Counted, after: Counted) -> Met | None:
    """None while nothing came."""
    look = _between(elapsed_s, {(0, "", 0): before}, {(0, "", 0): after})
    if not look.messages or elapsed_s <= 0:
        return None
    loss = 100 * look.skipped / look.seen if look.seen else None
    rate_hz, size = look.messages / elapsed_s, look.bytes / look.messages
    return Met(loss, _burst(look) if look.seen else None, rate_hz, size)


class Surroundings:
    """Of one tag. Give it every look; it knows the environment."""

    def __init__(self, looks: int = LOOKS) -> None:
        self._most = looks
        self._before: dict[str, tuple[float, dict[_Key, Counted]]] = {}
        self._looks: dict[str, deque[_Look]] = {}
        self._sent_before: dict[str, dict[_Key, Counted]] = {}
        self._sent: deque[_Look] = deque(maxlen=looks)
        """Of all senders together, losses alone."""
        self._ways: dict[str, tuple[float, float]] = {}
        self._empty: list[dict[str, _Look]] = []
        """Looks in which nothing came, since something did."""
        self._lines: dict[str, Line] = {}
        """By who sends."""
        """Of nodes that send, as of the last look."""
        self.carried_by: set[str] = set()
        """Transports of the channels in the last look: a pinned one, or one that is left, is not what was chosen."""

    def look(self, now_s: float, heard: Iterable[Heard]) -> None:
        """Nodes that are not among them receive nothing any more."""
        heard = list(heard)
        self._look_at_senders({one.node: _by_key(one.sent) for one in heard if one.sent})
        self._lines = {one.node: Line(one.line, one.leaves) for one in heard if one.line > 0}
        busy = any(line.is_busy for line in self._lines.values())
        told = {one.node: one for one in heard if one.channels}
        self.carried_by = {channel.transport for one in told.values() for channel in one.channels}
        for gone in self._before.keys() - told.keys():
            del self._before[gone], self._looks[gone], self._ways[gone]
        found: dict[str, _Look] = {}
        for node, one in told.items():
            channels = _by_key(one.channels)
            if node in self._before:
                then_s, before = self._before[node]
                found[node] = _between(now_s - then_s, before, channels)
            else:
                self._looks[node] = deque(maxlen=self._most)
            self._before[node] = now_s, channels
            # Behind a busy line messages wait in its queue: the way is as long as it was at its shortest since then.
            shortest_s = self._ways[node][0] if busy and node in self._ways else math.inf
            self._ways[node] = min(one.round_trip_s, shortest_s), one.bandwidth
        if any(look.messages or look.seen for look in found.values()):
            # Of a pause nothing counts but that it was.
            paused = [{node: look._replace(elapsed_s=0.0) for node, look in looks.items()} for looks in self._empty[:1]]
            for looks in (*(self._empty if len(self._empty) <= PAUSE else paused), found):
                for node in looks.keys() & self._looks.keys():
                    self._looks[node].append(looks[node])
            self._empty = []
            self._forget_another()
        elif found:
            self._empty = [*self._empty, found][: PAUSE + 1]

    def _look_at_senders(self, told: dict[str, dict[_Key, Counted]]) -> None:
        looks = [_between(0.0, self._sent_before.get(node, {}), streams) for node, streams in told.items()]
        self._sent_before = told
        if looks:
            found = _sum(looks)
            self._sent.append(_Look(0.0, 0, 0, found.seen, found.skipped, found.gaps, 0))

    def _forget_another(self) -> None:
        """All nodes are looked at together: few messages say little."""
        for lately in LATELY:
            every = [*self._looks.values(), self._sent]
            old = [look for looks in every for look in list(looks)[:-lately]]
            new = [look for looks in every for look in list(looks)[-lately:]]
            if old and new and _differ(_sum(old), _sum(new)):
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
            look = _sum([looks[-at] for looks in self._looks.values() if len(looks) >= at])
            if not look.messages:
                continue
            rates.append(_rate(look))
            if len(rates) == SLOWER:
                before = [look for looks in self._looks.values() for look in list(looks)[:-at]]
                return at if before and max(rates) * OTHER_RATE < _rate(_sum(before)) else 0
        return 0

    def cost(self) -> Cost:
        """What the stream cost between the last two looks, all receivers together."""
        last = [looks[-1] for looks in self._looks.values() if looks] if not self._empty else []
        return Cost(*(sum(getattr(look, name) for look in last) for name in Cost._fields))

    @property
    def paused(self) -> bool:
        """Whether nothing came for so long that the stream is not merely slow."""
        return len(self._empty) > PAUSE

    def line_is(self, one: Heard) -> None:
        """Of one sender, between looks."""
        if one.line > 0:
            self._lines[one.node] = Line(one.line, one.leaves)

    def line(self) -> float:
        """Bytes per second that are left for the tag of its senders' lines; 0 where nobody told of them, or nothing
        came yet."""
        taken = [_taken(_sum(list(looks))) for looks in self._looks.values() if any(look.messages for look in looks)]
        return lines.thinnest(self._lines.values(), lines.own(taken, self.carried_by)) if taken else 0.0

    def environment(self) -> Environment | None:
        """None while nothing came."""
        looks = [look for node in self._looks.values() for look in node]
        messages, elapsed = sum(look.messages for look in looks), sum(look.elapsed_s for look in looks)
        if not messages or elapsed <= 0:
            return None
        lossy = [*looks, *self._sent]
        losses = _sum(lossy)
        # Of all publishers together a node gets so many; each sends its share of them.
        streams = max((look.streams for look in looks), default=1) or 1
        bandwidths = [one for one in (*(one for _, one in self._ways.values()), self.line()) if one > 0]
        return Environment(
            receivers=len(self._looks),
            loss_percent=100 * losses.skipped / losses.seen if losses.seen else 0.0,
            burst=_burst(losses),
            rate_hz=max(messages / elapsed, _usual_rate(looks)) / streams,
            payload_bytes=sum(look.bytes for look in looks) / messages,
            delay_us=max(1e6 * max(round_trip for round_trip, _ in self._ways.values()) / 2, LEAST_DELAY_US),
            bandwidth_mbit=8e-6 * min(bandwidths) if bandwidths else ENDLESS_MBIT,
            messages=losses.seen,
        )


def _taken(look: _Look) -> Taken:
    """What was sent to one node: packets that came, and as many more as messages were missing."""
    if look.elapsed_s <= 0:
        return Taken(0.0, 0.0)
    arrived = max(1 - look.skipped / look.seen, 0.5) if look.seen else 1.0
    packets = max(look.heard / look.of / arrived, 1.0) if look.of else 1.0
    return Taken(packets * look.messages / look.elapsed_s, look.bytes / look.messages)


def _burst(losses: _Look) -> float:
    """How many packets in a row are lost, on average.

    As if the line were good or bad for a while (Gilbert and Elliott), and lost everything while it is bad. Between a
    packet and the next it stays as it is with the correlation c; between a message and the next with c^n, where n is
    the number of packets. From how often the message after a lost one was lost too follow c^n, c, and how long the line
    is bad. What chance may bring is left out of it, or the n-th root would make a burst of it.
    """
    if not losses.skipped or not losses.seen or losses.skipped >= losses.seen:
        return LEAST_BURST
    share = losses.skipped / losses.seen
    again = 1 - min(losses.gaps / losses.skipped, 1.0) - BY_CHANCE * math.sqrt(share * (1 - share) / losses.skipped)
    together = (again - share) / (1 - share)
    if together <= 0:
        return LEAST_BURST
    packets = max(losses.heard / losses.of / (1 - share), 1.0) if losses.of else 1.0
    leaves = (1 - math.pow(together, 1 / packets)) * (1 - share)
    return min(max(1 / leaves, LEAST_BURST), LONGEST_BURST)


def _sum(looks: list[_Look]) -> _Look:
    elapsed, *counts = map(sum, zip(*looks, strict=True))
    return _Look(elapsed, *map(int, counts))


def _rate(look: _Look) -> float:
    return look.messages / look.elapsed_s if look.elapsed_s > 0 else 0.0


def _usual_rate(looks: list[_Look]) -> float:
    """What most looks say: a stream that paused during one of them has not become slower. 0 where few messages come
    between looks, and chance makes it more or less."""
    rates = [_rate(look) for look in looks if look.elapsed_s > 0]
    return median(rates) if sum(look.messages for look in looks) >= ENOUGH_FOR_A_RATE * len(rates) > 0 else 0.0


def _differ(old: _Look, new: _Look) -> bool:
    """Whether the same environment would hardly have brought both. Of a rate that fell see `_slower`."""
    if not (old.messages and new.messages and old.elapsed_s > 0 and new.elapsed_s > 0):
        return False
    sizes = new.bytes / new.messages, old.bytes / old.messages
    if _rate(new) > OTHER_RATE * _rate(old) or max(sizes) > OTHER_RATE * min(sizes):
        return True
    if not (old.seen and new.seen):
        return False
    if min(old.skipped, new.skipped) >= ENOUGH_LOST and _alike(old, new):
        # The share of losses that follow a loss.
        again = 1 - (old.gaps + new.gaps) / (old.skipped + new.skipped)
        deviation = math.sqrt(max(again * (1 - again), 0.0) * (1 / old.skipped + 1 / new.skipped))
        if abs(new.gaps / new.skipped - old.gaps / old.skipped) > CHANGED * deviation > 0:
            return True
    share = (old.skipped + new.skipped) / (old.seen + new.seen)
    # Messages of a burst are lost together, so there are fewer chances than messages.
    burst = max((old.skipped + new.skipped) / max(old.gaps + new.gaps, 1), LEAST_BURST)
    deviation = math.sqrt(share * (1 - share) * burst * (1 / old.seen + 1 / new.seen))
    return abs(new.skipped / new.seen - old.skipped / old.seen) > CHANGED * deviation > 0


def _alike(old: _Look, new: _Look) -> bool:
    """Whether both had about as many packets between messages: if not, they see other runs of the same bursts."""
    counts = [look.heard / look.of for look in (old, new) if look.of]
    return len(counts) < 2 or max(counts) <= OTHER_RATE * min(counts)


def _by_key(channels: Iterable[Counted]) -> dict[_Key, Counted]:
    return {(counted.incarnation, counted.transport, at): counted for at, counted in _numbered(channels)}


def _numbered(channels: Iterable[Counted]) -> Iterator[tuple[int, Counted]]:
    """A publisher's stream may come more than once by one transport, in other sizes."""
    seen: Counter[tuple[int, str]] = Counter()
    for one in channels:
        yield seen[one.incarnation, one.transport], one
        seen[one.incarnation, one.transport] += 1


def _retuned(key: _Key, before: dict[_Key, Counted], after: dict[_Key, Counted]) -> Counted | None:
    """What a channel had counted when it had other parameters: it is the same one, and counts on."""
    incarnation, transport, _ = key
    for other, then in before.items():
        if other not in after and other[0] == incarnation and _kind(other[1]) == _kind(transport):
            return then
    return None


def _kind(transport: str) -> str:
    return transport.partition(":")[0]


def _between(elapsed_s: float, before: dict[_Key, Counted], after: dict[_Key, Counted]) -> _Look:
    messages = size = seen = skipped = gaps = lost = delay_ns = heard = of = 0
    for key, now in after.items():
        then = before.get(key) or _retuned(key, before, after)
        if then is None or then.messages > now.messages:
            then = Counted(now.incarnation, now.transport, 0, 0, 0)
        came = now.messages - then.messages
        messages += came
        size += now.bytes - then.bytes
        lost += max(now.lost - then.lost, 0)
        delay_ns += max(now.delay_ns - then.delay_ns, 0)
        if not now.hidden:
            # Without a stack that looks for gaps, what was lost in the end is all that is known.
            missing = max(now.skipped - then.skipped, now.lost - then.lost, 0)
            both = max(came + now.lost - then.lost, missing)
            seen += both
            if now.packets:
                heard += max(now.packets - then.packets, 0)
                of += both
            skipped += missing
            gaps += max(now.gaps - then.gaps, 1 if missing and not now.skipped else 0)
    return _Look(elapsed_s, messages, size, seen, skipped, gaps, len(after), lost, delay_ns, heard, of)
