"""Finding which of many patterns select a tag, without trying each plain name. Pure.

Invariant: an item is found under exactly the names its pattern matches. Most subscriptions name one tag, so those
cost one lookup; only wildcards are tried one by one, and equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from ringcast.daemon.table.groups import Groups
from ringcast.model.tag import is_pattern, matches

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class PatternIndex(Generic[_K, _V]):
    """Items, each under a pattern, with a key of its own there."""

    def __init__(self, key: Callable[[_V], _K]) -> None:
        self._plain = Groups(key)
        self._wild = Groups(key)

    def add(self, pattern: str, item: _V) -> None:
        self._side(pattern).add(pattern, item)

    def discard(self, pattern: str, key: _K) -> None:
        self._side(pattern).discard(pattern, key)

    def exact(self, pattern: str) -> list[_V]:
        """The items under this very pattern."""
        return list(self._side(pattern).of(pattern))

    def items(self) -> Iterator[_V]:
        yield from self._plain.items()
        yield from self._wild.items()

    def matching(self, name: str) -> Iterator[_V]:
        """The items whose pattern selects the tag `name`."""
        yield from self._plain.of(name)
        for pattern in self._wild:
            if matches(pattern, name):
                yield from self._wild.of(pattern)

    def _side(self, pattern: str) -> Groups[_K, _V]:
        return self._wild if is_pattern(pattern) else self._plain
