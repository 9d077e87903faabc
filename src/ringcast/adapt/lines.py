"""What is left of senders' lines for a tag's streams. Pure.

A node that sends tells how fast its line is and all that leaves by it, of whatever streams. What of that is this tag's
follows from what receivers counted: nobody else knows how many packets a publisher sends that pushes by itself.
"""

from __future__ import annotations

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
    """In bytes per second: how fast it is, and what leaves by it."""

    rate: float
    leaves: float

    @property
    def is_busy(self) -> bool:
        """Whether messages may wait in its queue, so that their delay is not the length of the way."""
        return self.leaves > SHARE * self.rate


class Taken(NamedTuple):
    """What one receiver took of a tag: packets that were sent to it each second, and the size of messages."""

    packets_hz: float
    payload_bytes: float


def own(taken: Iterable[Taken], carried_by: Iterable[str]) -> float:
    """Bytes per second that a publisher's node sends of the tag: to each receiver by itself, or once for all."""
    rates = [one.packets_hz * (one.payload_bytes + HEADS_BYTES) for one in taken]
    each = any(makeup(transport).each for transport in carried_by)
    return sum(rates) if each else max(rates, default=0.0)


def left(rate: float, others: float) -> float:
    """Of a line, beside what other streams take of it."""
    return max(rate - max(others, 0.0), LEAST_LEFT * rate)


def thinnest(lines: Iterable[Line], own_rate: float) -> float:
    """What is left for a tag of the line that has the least; 0 where nobody told of one."""
    return min((left(line.rate, line.leaves - own_rate) for line in lines if line.rate > 0), default=0.0)


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
