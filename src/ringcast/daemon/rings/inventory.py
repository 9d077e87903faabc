"""The rings of this node, found by number, tag, pattern or incarnation. Who may have one is decided elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ringcast.daemon.rings.ring import Ring
from ringcast.model.tag import is_pattern, matches


class Rings:
    """Live rings and those that outlived their publishers."""

    def __init__(self) -> None:
        self._by_number: dict[int, Ring] = {}
        self._by_tag: dict[str, dict[int, Ring]] = {}
        self._by_incarnation: dict[int, Ring] = {}

    def add(self, ring: Ring) -> None:
        self._by_number[ring.number] = ring
        self._by_tag.setdefault(ring.tag, {})[ring.number] = ring
        self._by_incarnation[ring.ring] = ring

    def remove(self, ring: Ring) -> None:
        del self._by_number[ring.number]
        del self._by_incarnation[ring.ring]
        of_tag = self._by_tag[ring.tag]
        del of_tag[ring.number]
        if not of_tag:
            del self._by_tag[ring.tag]

    def __getitem__(self, number: int) -> Ring:
        return self._by_number[number]

    def __iter__(self) -> Iterator[Ring]:
        return iter(list(self._by_number.values()))

    def __len__(self) -> int:
        return len(self._by_number)

    def of_incarnation(self, incarnation: int) -> Ring | None:
        """By the ring's own incarnation, which for all but mirrors is its publisher's."""
        return self._by_incarnation.get(incarnation)

    def matching(self, pattern: str) -> list[Ring]:
        """The rings of every tag that the pattern, or plain name, selects."""
        if not is_pattern(pattern):
            return list(self._by_tag.get(pattern, {}).values())
        return [ring for tag, rings in self._by_tag.items() if matches(pattern, tag) for ring in rings.values()]
