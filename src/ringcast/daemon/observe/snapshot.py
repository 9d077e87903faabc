"""What a daemon knows of itself, taken in slices: counters of channels, rings and subscribers, and sums.

Taken in the daemon's loop, since only there the tables stand still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from ringcast.control.answers import Status
from ringcast.control.status import ChannelStatus, ClockStatus, PublisherStatus, SubscriberStatus
from ringcast.daemon.access.tokens import Permit
from ringcast.daemon.mesh.status import MeshStatus
from ringcast.daemon.observe.slices import Slices
from ringcast.daemon.rings.ring import DerivedRing, MirrorRing
from ringcast.daemon.server import Server


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
    refused: dict[str, int] = {}
    """Refusals on record, by action."""
    unrecorded: int = 0
    """How many of them were only counted."""
    throttled: int = 0
    longest_slice_s: float
    """How long taking it held the loop up at most."""


def seen_by(permit: Permit, snapshot: Snapshot) -> Snapshot:
    """What whoever has this permit may know: of tags, those of which a rule speaks; of the node, everything."""
    if permit.is_whole:
        return snapshot
    return msgspec.structs.replace(
        snapshot,
        channels=[row for row in snapshot.channels if permit.sees(row.tag)],
        publishers=[row for row in snapshot.publishers if permit.sees(row.info.tag)],
        subscribers=[row for row in snapshot.subscribers if permit.sees(row.info.pattern)],
    )


async def take(server: Server) -> Snapshot:
    network = server.network
    slices = Slices()
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
        dropped=dropped, clocks=clocks, refused=dict(server.audit.counts), unrecorded=server.audit.left_out,
        throttled=server.limits.throttled, longest_slice_s=slices.longest_s,
    )  # fmt: skip


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
