"""A derived ring as the daemon takes it in: where it is to begin, and whether what a stage made is one at all.

What a stage says about its ring is checked. Must not know who asked for the stage, nor who runs it.
"""

from __future__ import annotations

from typing import Protocol

from ringcast import _core
from ringcast.control.service import Start
from ringcast.daemon.clients.local import Local
from ringcast.daemon.rings.demand import StageSpec
from ringcast.daemon.rings.ring import DerivedRing, Ring
from ringcast.daemon.stages.runners import Made
from ringcast.daemon.table.attributes import check_geometry
from ringcast.errors import BadMessage


class Bases(Protocol):
    """Where a stage gets the whole stream of another node's publisher from."""

    async def base(self, spec: StageSpec, start: Start) -> Ring: ...
    def release_base(self, spec: StageSpec) -> None: ...


def derived(local: Local, base: Ring, spec: StageSpec, every: int, first_seq: int, made: Made) -> DerivedRing:
    """Raises BadMessage, CorruptRing, QosMismatch (a geometry that no ring may have)."""
    ring_fd, bell_fd = made.fds[0].fileno(), made.fds[1].fileno()
    depth, capacity_bytes, incarnation = made.up.depth, made.up.capacity_bytes, made.up.incarnation
    check_geometry(depth, capacity_bytes)
    if not 0 < incarnation < 2**64 or local.rings.of_incarnation(incarnation) is not None:
        raise BadMessage(f"incarnation {incarnation} is not a new one")
    monitor = _core.RingMonitor(ring_fd, bell_fd, depth=depth, capacity_bytes=capacity_bytes, incarnation=incarnation)
    history = _core.RingHistory()
    history.attach(ring_fd, depth=depth, capacity_bytes=capacity_bytes, incarnation=incarnation)
    return DerivedRing(
        local.number(), base, spec, every, first_seq, made.up, made.fds, monitor, lambda: history.bounds()[1]
    )  # fmt: skip


def first(base: Ring, start: Start) -> int:
    """The sequence number at which the first stage of a spec begins."""
    match start:
        case "new":
            return base.next_seq
        case "latest":
            return max(oldest_seq(base), base.next_seq - 1)
        case int(number):
            return min(max(oldest_seq(base), number), base.next_seq)
        case _:
            return oldest_seq(base)


def oldest_seq(ring: Ring) -> int:
    """The oldest number held, or the next one when nothing is."""
    # In this order: of a ring that gets its first message meanwhile, that one is the oldest.
    following = ring.next_seq
    history = _core.RingHistory()
    try:
        memory = ring.files[0].open()
        history.attach(
            memory.fileno(), depth=ring.row.depth, capacity_bytes=ring.row.capacity_bytes, incarnation=ring.ring
        )
        oldest, newest = history.bounds()
    finally:
        history.close()
    return oldest if oldest <= newest else following
