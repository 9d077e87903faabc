"""Channels that come to this node, as values: what is wanted, what is open, where a broken one goes on.

The rules are in `ringcast.daemon.streams.incoming`.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import msgspec

from ringcast.daemon.rings.demand import Demand
from ringcast.daemon.rings.ring import MirrorRing
from ringcast.daemon.streams.state import Life, State
from ringcast.daemon.table.rows import PublisherRow
from ringcast.scaling.temporal import first_due
from ringcast.transport import Receiving, find
from ringcast.transport.interface import GroupReceiving, GroupTransport, Mirror

SETTLE_S = 0.001


class Stream(NamedTuple):
    """What is wanted: one publisher's stream, carried and scaled in one way."""

    incarnation: int
    demand: Demand

    def differs_in_parameters(self, other: Stream) -> bool:
        """Whether both have the same stages, and nothing else is different."""
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
    receiving: Receiving
    leaves_at: float | None = None
    """When it is closed although its publisher's last message has not come."""

    @property
    def broken(self) -> bool:
        return self.life.state is State.BROKEN

    @property
    def group(self) -> GroupReceiving:
        """The receiving end, of a channel that shares its stream."""
        return cast(GroupReceiving, self.receiving)

    def has_all_before(self, end: int) -> bool:
        """Whether every due message before `end` has come."""
        return first_due(self.mirror.next_seq, self.ring.every) >= end


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
