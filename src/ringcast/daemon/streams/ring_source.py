"""A ring of this node as a sending end reads it: a publisher's, a mirror, or what a stage makes.

Invariant: whoever pushes into the ring is told of links at once, or has left.
"""

from __future__ import annotations

from collections.abc import Callable

from ringcast import _core
from ringcast.daemon.rings.pacing import Paces
from ringcast.daemon.rings.ring import Hold, Ring
from ringcast.daemon.stages.derivation import oldest_seq
from ringcast.transport.interface import FanOutLinks, LinkSeal


class RingSource:
    """See `Source`. `flush` tells the ring's writer what was added to its fan-out. Raises ResourceLimit."""

    def __init__(self, ring: Ring, flush: Callable[[Ring], None], paces: Paces) -> None:
        self._ring = ring
        self._flush = flush
        self._paces = paces
        self._memory, self._bell = (file.open() for file in ring.files)
        self.ring_fd = self._memory.fileno()
        self.bell_fd = self._bell.fileno()
        self.ring = ring.ring
        self.depth = ring.row.depth
        self.capacity_bytes = ring.row.capacity_bytes

    @property
    def next_seq(self) -> int:
        return self._ring.next_seq

    @property
    def oldest_seq(self) -> int:
        """The oldest number held, or the next one when nothing is."""
        return oldest_seq(self._ring)

    @property
    def fresh_seq(self) -> int:
        return self._ring.fresh_seq

    @property
    def age_ns(self) -> int | None:
        return self._ring.age_ns

    @property
    def ended(self) -> bool:
        return self._ring.closed

    def factor(self, every: int, rate_hz: float) -> int:
        if self._ring.size is not None:
            return self._ring.every
        return self._paces.every(self._ring, rate_hz) if rate_hz else every

    def changed_factor(self, every: int, rate_hz: float) -> bool:
        return rate_hz > 0 and self._paces.follow(self._ring, rate_hz) != every

    def keep_place(self) -> Hold | None:
        """Keep what the slowest reliable channel has not sent, though that channel ends. None where publishers do not
        wait, and for mirrors: holding one up would stop it for all."""
        place = None if self._ring.foreign or not self._ring.alive else self._ring.monitor.place()
        if place is None or self._ring.attributes.max_wait_s == 0:
            return None
        holder = _core.RingReader(reliable=True, what="place")
        holder.attach(
            self.ring_fd, self.bell_fd, depth=self.depth, capacity_bytes=self.capacity_bytes, incarnation=self.ring,
            start=place,
        )  # fmt: skip
        return holder

    def take_over(self) -> None:
        """A reliable channel has a place in the ring: free the one that a dead daemon left."""
        if not self._ring.foreign and self._ring.alive:
            self._ring.monitor.free_orphan()

    @property
    def links(self) -> FanOutLinks:
        return self

    def add_link(
        self, number: int, fd: int, *, key: int, every: int, chunk: int, first_seq: int, seal: LinkSeal | None = None,
        rank: int = 0,
    ) -> None:  # fmt: skip
        how = {"key": key, "every": every, "chunk": chunk, "first_seq": first_seq, "rank": rank}
        self._ring.fanout.add_link(number, fd, seal=seal, **how)
        self._flush(self._ring)

    def rekey_link(self, number: int, seal: LinkSeal) -> None:
        self._ring.fanout.rekey_link(number, seal)
        self._flush(self._ring)

    def remove_link(self, number: int) -> None:
        self._ring.fanout.remove_link(number)
        self._flush(self._ring)
