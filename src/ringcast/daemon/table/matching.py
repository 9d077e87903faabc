"""Finding which of many patterns select a tag, without trying each plain name. Pure.

Invariant: an item is found under exactly the names its pattern matches. Most subscriptions name one tag, so those
cost one lookup; only wildcards are tried one by one, and equal ones once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from ringcast.model.tag import is_pattern, matches

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class PatternIndex(Generic[_K, _V]):
    """Items by key, each under a pattern."""

    def __init__(self) -> None:
        self._plain: dict[str, dict[_K, _V]] = {}
        self._wild: dict[str, dict[_K, _V]] = {}

    def add(self, pattern: str, key: _K, item: _V) -> None:
        self._side(pattern).setdefault(pattern, {})[key] = item

    def discard(self, pattern: str, key: _K) -> None:
        side = self._side(pattern)
        items = side.get(pattern)
        if items is not None:
            items.pop(key, None)
            if not items:
                del side[pattern]

    def exact(self, pattern: str) -> list[_V]:
        """The items under this very pattern."""
        return list(self._side(pattern).get(pattern, {}).values())

    def items(self) -> Iterator[_V]:
        for side in (self._plain, self._wild):
            for items in side.values():
                yield from items.values()

    def matching(self, name: str) -> Iterator[_V]:
        """The items whose pattern selects the tag `name`."""
        yield from self._plain.get(name, {}).values()
        for pattern, items in self._wild.items():
            if matches(pattern, name):
                yield from items.values()

    def _side(self, pattern: str) -> dict[str, dict[_K, _V]]:
        return self._wild if is_pattern(pattern) else self._plain
