"""Leases of tags: how long nobody has used a tag of this node, and which tags have expired. Pure: time is an argument.

A tag is used while somebody publishes on it, subscribes to it by its name, or a publisher's ring is still held for
pulls. Each node looks at the tags that it keeps; whoever takes a tag over counts from then on. Without this, programs
that make up names would fill the tables of all nodes.
"""

from __future__ import annotations

from collections.abc import Collection

DEFAULT_LEASE_S = 24 * 3600.0


class Leases:
    """`lease_s` is how long a tag stays that nobody uses; 0 is for ever."""

    def __init__(self, lease_s: float = DEFAULT_LEASE_S) -> None:
        self._lease_s = lease_s
        self._unused_since: dict[str, float] = {}

    @property
    def period_s(self) -> float | None:
        """How often to look; None is never."""
        return min(60.0, max(0.01, self._lease_s / 4)) if self._lease_s else None

    def look(self, unused: Collection[str], now_s: float) -> list[str]:
        """Of the tags that nobody uses now, those that have not been used for so long that they end."""
        self._unused_since = {name: self._unused_since.get(name, now_s) for name in unused}
        return [name for name, since_s in self._unused_since.items() if now_s - since_s >= self._lease_s]
