"""What a daemon knows of itself, taken in slices: counters of channels, rings and subscribers, and sums.

Taken in the daemon's loop, since only there the tables stand still; between two slices everybody else has a turn, so a
thousand channels hold nobody up. Rows of different slices are of slightly different moments.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from ringcast.control.answers import Status
from ringcast.control.status import ChannelStatus, ClockStatus, PublisherStatus, SubscriberStatus
from ringcast.daemon.mesh.status import MeshStatus
from ringcast.daemon.rings.ring import DerivedRing, MirrorRing
from ringcast.daemon.server import Server

SLICE_S = 0.001
"""How long rows are read without a break."""

_T = TypeVar("_T")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    status: Status
    mesh: MeshStatus | None
    clocks: dict[str, ClockStatus]
    """Of other nodes."""
    nodes: dict[str, int]
    """How many nodes are in which state."""
    channels: list[ChannelStatus]
    dropped: dict[str, dict[str, int]]
    publishers: list[PublisherStatus]
    """Of this node, with those whose rings are still held."""
    subscribers: list[SubscriberStatus]
    longest_slice_s: float
    """How long taking it held the loop up at most."""


async def take(server: Server) -> Snapshot:
    network = server.network
    slices = _Slices()
    channels = await slices.gather(network.channels() if network is not None else ())
    publishers = await slices.gather(_publishers(server))
    subscribers = await slices.gather(_subscribers(server))
    status = server.status()
    await slices.rest()
    mesh = network.mesh.status() if network is not None else None
    nodes = Counter(node.state for node in network.nodes()) if network is not None else {"here": 1}
    clocks = network.clocks.statuses() if network is not None else {}
    dropped = network.dropped() if network is not None else {}
    await slices.rest()
    return Snapshot(
        channels=channels, publishers=publishers, subscribers=subscribers, status=status, mesh=mesh, nodes=nodes,
        dropped=dropped, clocks=clocks, longest_slice_s=slices.longest_s,
    )  # fmt: skip


class _Slices:
    """Lets others have a turn of the loop, and knows how long they waited for it at most."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._begin = time.perf_counter()

    async def rest(self) -> None:
        self.longest_s = max(self.longest_s, time.perf_counter() - self._begin)
        await asyncio.sleep(0)
        self._begin = time.perf_counter()

    async def gather(self, rows: Iterable[_T]) -> list[_T]:
        found: list[_T] = []
        for row in rows:
            found.append(row)
            if time.perf_counter() - self._begin > SLICE_S:
                await self.rest()
        await self.rest()
        return found


def _publishers(server: Server) -> Iterator[PublisherStatus]:
    rings = server.local.rings
    for ring in rings:
        if not isinstance(ring, MirrorRing | DerivedRing) and rings.of_incarnation(ring.ring) is ring:
            yield ring.status()


def _subscribers(server: Server) -> Iterator[SubscriberStatus]:
    for subscription in list(server.local.sharing.subscriptions.items()):
        held = server.local.subscription(subscription.client.number, subscription.number)
        if subscription.counts and held is subscription:
            yield subscription.status()
