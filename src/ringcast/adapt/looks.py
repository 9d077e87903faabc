"""What happened at a node between two looks at its counters, and what several looks together say. Pure.

Counters only grow, so two looks give what happened between them; a channel that was opened again counts from 0.
Networks lose packets in bursts, and receivers see runs of messages: the more packets a transport has between two
messages, the shorter the runs. How many there were is counted, so the length of bursts is told in packets, and is the
same whatever carries the stream (`burst_of`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from ringcast.adapt.lines import Taken
from ringcast.control.between.choosing import Counted

LEAST_BURST = 1.0
CHANGED = 5.0
"""Standard deviations by which a loss must differ to be another one."""
OTHER_RATE = 1.5
"""A rate or a size that differs by this factor is another one."""
ENOUGH_FOR_A_RATE = 10
"""Messages in a look."""
ENOUGH_LOST = 20
"""Fewer say nothing of the length of bursts."""
BY_CHANCE = 3.0
"""Standard deviations by which losses in a row must be more than chance brings to be a burst."""
LONGEST_BURST = 100.0

Key = tuple[int, str, int]


class Look(NamedTuple):
    """What happened between two looks, at one node."""

    elapsed_s: float
    messages: int
    bytes: int
    seen: int
    """Messages that came or did not, where losses are seen."""
    skipped: int
    gaps: int
    streams: int
    """Publishers, or more where a stream comes in several sizes."""
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
    look = between(elapsed_s, {(0, "", 0): before}, {(0, "", 0): after})
    if not look.messages or elapsed_s <= 0:
        return None
    loss = 100 * look.skipped / look.seen if look.seen else None
    rate_hz, size = look.messages / elapsed_s, look.bytes / look.messages
    return Met(loss, burst_of(look) if look.seen else None, rate_hz, size)


def burst_of(losses: Look) -> float:
    """How many packets in a row are lost, on average.

    As if the line were good or bad for a while (Gilbert and Elliott), and lost everything while it is bad. Between a
    packet and the next it stays as it is with the correlation c; between a message and the next with c^n, where n is
    the number of packets. From how often the message after a lost one was lost too follow c^n, c, and how long the line
    is bad. What chance may bring is no burst, although the n-th root would make one of it.
    """
    if not losses.skipped or not losses.seen or losses.skipped >= losses.seen:
        return LEAST_BURST
    share = losses.skipped / losses.seen
    more = 1 - min(losses.gaps / losses.skipped, 1.0) - share
    if more <= BY_CHANCE * math.sqrt(share * (1 - share) / losses.skipped):
        return LEAST_BURST
    together = more / (1 - share)
    packets = max(losses.heard / losses.of / (1 - share), 1.0) if losses.of else 1.0
    leaves = (1 - math.pow(together, 1 / packets)) * (1 - share)
    return max(1 / leaves, LEAST_BURST) if leaves * LONGEST_BURST > 1 else LONGEST_BURST


def total(looks: list[Look]) -> Look:
    elapsed, *counts = map(sum, zip(*looks, strict=True))
    return Look(elapsed, *map(int, counts))


def rate(look: Look) -> float:
    return look.messages / look.elapsed_s if look.elapsed_s > 0 else 0.0


def usual_rate(looks: list[Look]) -> float:
    """What most looks say: a stream that paused during one of them has not become slower. 0 where few messages come
    between looks, and chance makes it more or less."""
    rates = [rate(look) for look in looks if look.elapsed_s > 0]
    return median(rates) if sum(look.messages for look in looks) >= ENOUGH_FOR_A_RATE * len(rates) > 0 else 0.0


def differ(old: Look, new: Look) -> bool:
    """Whether the same environment would hardly have brought both. Of a rate that fell see `_slower`."""
    if not (old.messages and new.messages and old.elapsed_s > 0 and new.elapsed_s > 0):
        return False
    sizes = new.bytes / new.messages, old.bytes / old.messages
    if rate(new) > OTHER_RATE * rate(old) or max(sizes) > OTHER_RATE * min(sizes):
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


def _alike(old: Look, new: Look) -> bool:
    """Whether both had about as many packets between messages: if not, they see other runs of the same bursts."""
    counts = [look.heard / look.of for look in (old, new) if look.of]
    return len(counts) < 2 or max(counts) <= OTHER_RATE * min(counts)


def by_key(channels: Iterable[Counted]) -> dict[Key, Counted]:
    return {(counted.incarnation, counted.transport, at): counted for at, counted in _numbered(channels)}


def _numbered(channels: Iterable[Counted]) -> Iterator[tuple[int, Counted]]:
    """A publisher's stream may come more than once by one transport, in other sizes."""
    seen: Counter[tuple[int, str]] = Counter()
    for one in channels:
        yield seen[one.incarnation, one.transport], one
        seen[one.incarnation, one.transport] += 1


def _retuned(key: Key, before: dict[Key, Counted], after: dict[Key, Counted]) -> Counted | None:
    """What a channel had counted when it had other parameters: it is the same one, and counts on."""
    incarnation, transport, _ = key
    for other, then in before.items():
        if other not in after and other[0] == incarnation and _kind(other[1]) == _kind(transport):
            return then
    return None


def _kind(transport: str) -> str:
    return transport.partition(":")[0]


def between(elapsed_s: float, before: dict[Key, Counted], after: dict[Key, Counted]) -> Look:
    return _look(elapsed_s, _once(before, after), _streams(after))


def _look(elapsed_s: float, pairs: Iterable[tuple[Counted, Counted]], streams: int) -> Look:
    """Of what was counted now and then."""
    messages = size = seen = skipped = gaps = lost = delay_ns = heard = of = 0
    for now, then in pairs:
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
            gaps += max(now.gaps - then.gaps, 1 if missing else 0)
    return Look(elapsed_s, messages, size, seen, skipped, gaps, streams, lost, delay_ns, heard, of)


def _then(key: Key, before: dict[Key, Counted], after: dict[Key, Counted]) -> Counted:
    """What that channel had counted; nothing where it was opened since."""
    now, then = after[key], before.get(key) or _retuned(key, before, after)
    if then is None or then.messages > now.messages:
        return Counted(now.incarnation, now.transport, 0, 0, 0)
    return then


def _once(before: dict[Key, Counted], after: dict[Key, Counted]) -> list[tuple[Counted, Counted]]:
    """Now and then, of each publisher's stream once: by two transports it comes to those who asked for different ones,
    and the same messages come twice. While it changes from one to the other, what came by both is the stream."""
    found: list[tuple[Counted, Counted]] = []
    lasting: dict[int, Counter[str]] = {}
    for key, now in after.items():
        then = _then(key, before, after)
        if then is before.get(key):
            lasting.setdefault(now.incarnation, Counter())[now.transport] += now.messages - then.messages
        found.append((now, then))
    main = {incarnation: max(by, key=by.__getitem__) for incarnation, by in lasting.items() if len(by) > 1}
    return [(now, then) for now, then in found if main.get(now.incarnation, now.transport) == now.transport]


def _streams(channels: Iterable[Key]) -> int:
    """While a stream changes its transport it comes by both."""
    by_both = Counter((incarnation, transport) for incarnation, transport, _ in channels)
    most: dict[int, int] = {}
    for (incarnation, _), count in by_both.items():
        most[incarnation] = max(count, most.get(incarnation, 0))
    return sum(most.values())


def taken(elapsed_s: float, before: dict[Key, Counted], after: dict[Key, Counted]) -> list[Taken]:
    """What was sent to one node, by transport: messages that came, and those that were lost in the end."""
    by_transport: dict[str, list[tuple[Counted, Counted]]] = defaultdict(list)
    for key, now in after.items() if elapsed_s > 0 else ():
        by_transport[now.transport].append((now, _then(key, before, after)))
    looks = {transport: _look(elapsed_s, pairs, len(pairs)) for transport, pairs in by_transport.items()}
    return [
        Taken(transport, (look.messages + look.lost) / elapsed_s, look.bytes / look.messages)
        for transport, look in looks.items() if look.messages
    ]  # fmt: skip
