"""What is left of senders' lines for a tag's streams. Pure.

A node that sends tells how fast its line is and all that leaves by it, of whatever streams. What of that is this tag's
follows from what receivers counted: nobody else knows how many packets a publisher sends that pushes by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from ringcast.adapt.features import HEADS_BYTES, REPAIR_HEADS_BYTES
from ringcast.adapt.names import Makeup, makeup

SHARE, KEPT_SHARE = 0.7, 0.9
"""Of what is left of a line: what one transport may take of it to be chosen, and what it may take and stay. Beyond that
messages wait behind each other; between the two nothing goes back and forth because a measurement does."""
LEAST_LEFT = 0.01
"""Of a line, whatever else it carries."""


class Line(NamedTuple):
    """In bytes per second: how fast it is, and what leaves by it; and how many publishers of the tag send by it, 0
    where nobody says."""

    rate: float
    leaves: float
    streams: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether messages may wait in its queue, so that their delay is not the length of the way."""
        return self.leaves > SHARE * self.rate


class Taken(NamedTuple):
    """What one receiver took of a tag by one transport: how many messages were sent to it each second, and their
    size."""

    transport: str
    rate_hz: float
    payload_bytes: float


class Left(NamedTuple):
    """Of a line for a tag, in bytes per second, and for how many streams."""

    rate: float
    streams: int

    @property
    def each(self) -> float:
        return self.rate / self.streams


def own(taken: Iterable[Taken], streams: int, loss: float) -> float:
    """Bytes per second that publishers' nodes send of the tag, as it is expected of what carries it (`sent`): to each
    receiver by itself, or once for all. What is expected of a candidate and what is taken off here are alike, so a
    mistake in both is none in their sum."""
    by_transport: dict[str, list[Taken]] = defaultdict(list)
    for one in taken:
        by_transport[one.transport].append(one)
    total = 0.0
    for transport, some in by_transport.items():
        made, fastest = makeup(transport), max(some, key=lambda one: one.rate_hz)
        of = load(made, fastest.rate_hz / streams)
        if made.each:
            total += sum(one.rate_hz * sent(of, one.payload_bytes, 1, loss) for one in some)
        else:
            total += fastest.rate_hz * sent(of, fastest.payload_bytes, len(some), loss)
    return total


def left(rate: float, others: float) -> float:
    """Of a line, beside what other streams take of it."""
    return max(rate - max(others, 0.0), LEAST_LEFT * rate)


def thinnest(lines: Iterable[Line], own_rate: float, streams: int) -> Left | None:
    """What is left for a tag of the line that has the least for each stream, where all `streams` together take
    `own_rate`; None where nobody told of one. A line whose streams nobody told of has them all."""
    found = [
        Left(left(line.rate, line.leaves - own_rate * min(mine / streams, 1.0)), mine)
        for line in lines if line.rate > 0 for mine in [line.streams or streams]
    ]  # fmt: skip
    return min(found, key=lambda one: one.each, default=None)


class Load(NamedTuple):
    """What the publisher's node sends for each message: messages and repairs in packets, to each receiver by itself or
    once for all; `again`, as many more as receivers lose."""

    repairs: float
    each: bool
    again: bool


def load(made: Makeup, rate_hz: float) -> Load:
    """A block of parity goes out when it is full, or has waited. What is lateral, receivers send by their own lines."""
    repairs = made.c / min(made.r, int(made.flush_s * rate_hz) + 1) if made.code == "parity" else 0.0
    return Load(repairs, made.each, made.again)


def sent(of: Load, size: float, receivers: int, loss: float) -> float:
    """Bytes for each message of that size."""
    packet = size + HEADS_BYTES
    once = packet + of.repairs * (size + REPAIR_HEADS_BYTES)
    return (once * receivers if of.each else once) + (packet * loss * receivers if of.again else 0.0)
