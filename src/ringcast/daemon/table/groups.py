"""Many groups of few items: most tags have one row, one publisher, one subscriber, and a node knows all tags. Pure.

Invariant: a group holds one item of each key, and there is no empty group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class _Several(dict[_K, _V]):
    """The items of a group that has not had one only."""


class Groups(Generic[_K, _V]):
    """Items by the name of their group, with a key of their own in it. A single one is held as it is."""

    def __init__(self, key: Callable[[_V], _K]) -> None:
        self._key = key
        self._held: dict[str, _V | _Several[_K, _V]] = {}

    def add(self, group: str, item: _V) -> None:
        """In place of the one with its key."""
        held = self._held.get(group)
        if isinstance(held, _Several):
            held[self._key(item)] = item
        elif held is None or self._key(held) == self._key(item):
            self._held[group] = item
        else:
            self._held[group] = _Several({self._key(one): one for one in (held, item)})

    def discard(self, group: str, key: _K) -> None:
        held = self._held.get(group)
        if isinstance(held, _Several):
            held.pop(key, None)
            if not held:
                del self._held[group]
        elif held is not None and self._key(held) == key:
            del self._held[group]

    def of(self, group: str) -> Collection[_V]:
        """Not a copy."""
        held = self._held.get(group)
        if held is None:
            return ()
        return held.values() if isinstance(held, _Several) else (held,)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __contains__(self, group: str) -> bool:
        return group in self._held

    def items(self) -> Iterator[_V]:
        for group in self._held:
            yield from self.of(group)
