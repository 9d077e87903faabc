"""How much memory rings may come to occupy on this node, and which of the rings left behind make room. Pure.

A memfd has no size limit and running out is SIGBUS in whoever touches the page, so what a ring can grow to is
counted when it is made. Invariant: no ring is admitted beyond the budget; a live ring is never evicted; a
refusal evicts nothing.
"""

from __future__ import annotations

from collections import OrderedDict

from ringcast.errors import NoSpace

MAX_LINGERING_PER_TAG = 8


class Budget:
    """Rings are known by the number of their publisher."""

    def __init__(
        self, total_bytes: int, *, max_lingering: int, max_lingering_per_tag: int = MAX_LINGERING_PER_TAG
    ) -> None:
        self.total_bytes = total_bytes
        self._max_lingering = max_lingering
        self._max_lingering_per_tag = max_lingering_per_tag
        self._sizes: dict[int, int] = {}
        self._lingering: OrderedDict[int, str] = OrderedDict()  # oldest first
        self._lingering_of: dict[str, OrderedDict[int, None]] = {}
        self._used_bytes = 0
        self._lingering_bytes = 0

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def lingering(self) -> int:
        """How many rings outlived their publishers."""
        return len(self._lingering)

    def limit(self, total_bytes: int, *, max_lingering: int, max_lingering_per_tag: int) -> list[int]:
        """Change the limits; returns the lingering rings that must go. Live ones stay, whatever they take: with a
        smaller budget nothing is admitted until they leave."""
        self.total_bytes = total_bytes
        self._max_lingering = max_lingering
        self._max_lingering_per_tag = max_lingering_per_tag
        evicted = []
        for of_tag in list(self._lingering_of.values()):
            while len(of_tag) > max_lingering_per_tag:
                evicted.append(self._evict(next(iter(of_tag))))
        while self._lingering and (len(self._lingering) > max_lingering or self._used_bytes > total_bytes):
            evicted.append(self._evict(next(iter(self._lingering))))
        return evicted

    def admit(self, ring: int, size_bytes: int, instead_of: int | None = None) -> list[int]:
        """Take a new ring in; returns the lingering ones that must go for it. What a live one had whose place it takes
        counts no more, though that one is released later. Raises NoSpace."""
        freed_bytes = 0 if instead_of is None else self._sizes.get(instead_of, 0)
        live_bytes = self._used_bytes - self._lingering_bytes - freed_bytes
        if live_bytes + size_bytes > self.total_bytes:
            raise NoSpace(size_bytes, self.total_bytes - live_bytes, self.total_bytes)
        if instead_of is not None and freed_bytes:
            self._sizes[instead_of] = 0
            self._used_bytes -= freed_bytes
        evicted = []
        while self._used_bytes + size_bytes > self.total_bytes:
            evicted.append(self._evict(next(iter(self._lingering))))
        self._sizes[ring] = size_bytes
        self._used_bytes += size_bytes
        return evicted

    def linger(self, ring: int, tag: str) -> list[int]:
        """Keep the ring of a publisher that left while there is room; returns those that must go for it."""
        self._lingering[ring] = tag
        self._lingering_bytes += self._sizes[ring]
        evicted = []
        of_tag = self._lingering_of.setdefault(tag, OrderedDict())
        of_tag[ring] = None
        while len(of_tag) > self._max_lingering_per_tag:
            evicted.append(self._evict(next(iter(of_tag))))
        while len(self._lingering) > self._max_lingering:
            evicted.append(self._evict(next(iter(self._lingering))))
        return evicted

    def release(self, ring: int) -> None:
        """The ring is gone, live or lingering."""
        size = self._sizes.pop(ring)
        self._used_bytes -= size
        tag = self._lingering.pop(ring, None)
        if tag is not None:
            self._lingering_bytes -= size
            del self._lingering_of[tag][ring]
            if not self._lingering_of[tag]:
                del self._lingering_of[tag]

    def _evict(self, ring: int) -> int:
        self.release(ring)
        return ring
