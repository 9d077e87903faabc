"""Channels that come to this node, as values: what is wanted, what is open, where a broken one goes on.

The rules are in `ringcast.daemon.streams.incoming`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar, cast

import msgspec

from ringcast.control.service import Start
from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.rings.ring import MirrorRing, Ring
from ringcast.daemon.streams.state import Event, Life, State
from ringcast.daemon.table.rows import PublisherRow
from ringcast.scaling.temporal import first_due
from ringcast.transport import find
from ringcast.transport.interface import GroupReceiving, GroupTransport, Mirror, ReceivingEnd

SETTLE_S = 0.001
DRAIN_S = 1.0


class Stream(NamedTuple):
    """What is wanted: one publisher's stream, carried and scaled in one way."""

    incarnation: int
    demand: Demand

    def differs_in_parameters(self, other: Stream) -> bool:
        """Whether both have the same stages, and nothing else is different."""
        if self.demand.reader is not None:  # its parameters are in another process
            return False
        same = other.demand._replace(transport=self.demand.transport)
        if self.incarnation != other.incarnation or self.demand != same:
            return False
        old, new = find(self.demand.transport), find(other.demand.transport)
        return isinstance(old, GroupTransport) and isinstance(new, GroupTransport) and old.shape == new.shape


class IncomingChannel(msgspec.Struct):
    """A channel that is open."""

    key: int
    via: str
    transport: str
    row: PublisherRow
    mirror: Mirror
    ring: MirrorRing
    first_seq: int
    life: Life
    receiving: ReceivingEnd
    leaves_at: float | None = None
    """When it is closed although its publisher's last message has not come."""

    @property
    def broken(self) -> bool:
        return self.life.state is State.BROKEN

    @property
    def group(self) -> GroupReceiving:
        """The receiving end, of a channel that shares its stream."""
        return cast(GroupReceiving, self.receiving)

    def waits_for_rest(self, now: float) -> bool:
        """Its publisher left: whether what has not come is waited for."""
        if self.leaves_at is None:
            self.life.on(Event.LEFT)
            self.leaves_at = now + DRAIN_S
        return self.ring.demand.reliable or now < self.leaves_at

    def has_all_before(self, end: int) -> bool:
        """Whether every due message before `end` has come."""
        return first_due(self.mirror.next_seq, self.ring.every) >= end


_Key = TypeVar("_Key")


class Held:
    """What this node holds beside subscriptions: whole streams for proxies and stages, mirrors for pull buffers."""

    def __init__(self) -> None:
        self.relayed: Counter[Stream] = Counter()
        self.kept: Counter[tuple[str, Demand]] = Counter()

    @staticmethod
    def lets_go(held: Counter[_Key], key: _Key) -> bool:
        """One holder less; whether it was the last."""
        held[key] -= 1
        if held[key]:
            return False
        del held[key]
        return True

    def reads(self, tag: str, rows: Iterable[PublisherRow]) -> bool:
        relayed = {stream.incarnation for stream in self.relayed}
        return any(tag == kept for kept, _ in self.kept) or any(row.info.incarnation in relayed for row in rows)

    def keeps(self, tag: str, demand: Demand) -> bool:
        return any((tag, demand.every, demand.depth) == (name, kept.every, kept.depth) for name, kept in self.kept)


def joint_start(stream: Stream, channels: Mapping[Stream, IncomingChannel], start: Start) -> Start:
    """Where a stream begins that takes the place of one that its only reader so far received itself: where that one is.
    What it holds of earlier messages, the next mirror begins with."""
    had = [
        known.mirror.next_seq
        for other, known in channels.items()
        if other.demand.reader is not None and other._replace(demand=other.demand._replace(reader=None)) == stream
    ]
    return min(had, default=start)


def mirror_before(stream: Stream, rings: Iterable[Ring]) -> MirrorRing | None:
    """The mirror whose place the stream's takes because another process receives it. It is also a history, which goes
    on in the new one, unless others need not trust who wrote it."""
    demand = stream.demand
    kinds = [
        ring
        for ring in rings
        if isinstance(ring, MirrorRing)
        and (ring.alive and ring.info.incarnation == stream.incarnation and ring.trusted and not ring.unordered)
        and (ring.demand.reader != demand.reader and ring.demand.history == demand.history)
    ]
    return max(kinds, key=lambda ring: ring.demand.transport == demand.transport, default=None)


class Resumption(NamedTuple):
    """Where a stream that broke goes on: where its mirror ended, once that has ended."""

    tag: str
    end: asyncio.Task[int]


async def end_of(mirror: Mirror) -> int:
    """The number after its last. A message that comes while its channel is being closed is in it or is not; asking
    earlier would leave that open, and the message might come again with the next channel."""
    while not mirror.closed:
        await asyncio.sleep(SETTLE_S)
    return mirror.next_seq
