"""One run of benchmarks: its contenders, its length, what went wrong, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from harness.contenders import Contender
from harness.group import Group, grouped
from harness.process import PeerFailed, PeerLacks
from harness.workers import Workers

T = TypeVar("T")
Part = TypeVar("Part")


@dataclass
class Run:
    """What a benchmark gets to work with.

    `advance` moves the progress bar by one of the steps announced by `expect`.
    """

    contenders: tuple[Contender, ...]
    cores: list[int]
    workers: Workers
    quick: bool
    expect: Callable[[str, int], None]
    advance: Callable[[str], None]
    parts: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    _failed: set[tuple[str, str]] = field(default_factory=set)

    def wants(self, part: str) -> bool:
        """Whether that part of a question is measured: all are, unless some were named."""
        return not self.parts or part in self.parts

    @property
    def ours(self) -> str:
        """The name under which Ringcast's figures stand."""
        return next((contender.name for contender in self.contenders if contender.ours), "ringcast")

    def offering(self, what: str) -> list[Contender]:
        """The contenders that can do `what`."""
        return [contender for contender in self.contenders if what in contender.offers]

    def alternate(self, what: str, rounds: int, who: Sequence[Contender]) -> Iterator[tuple[int, Contender]]:
        """Every contender once per round, each round in the opposite order: the machine's drift hits all alike."""
        self.expect(what, rounds * len(who))
        for number in range(rounds):
            for contender in who if number % 2 == 0 else reversed(who):
                self.advance(f"{what}: {contender.name}")
                yield number, contender

    def each(
        self, contender: Contender, parts: Sequence[tuple[str, Part]], measure: Callable[[Group, Part], T]
    ) -> dict[str, T]:
        """Measure the named parts one after the other in one group, and return those that went well.

        A part that fails is noted and not tried again in this run; the parts after it get a fresh group.
        """
        results: dict[str, T] = {}
        todo = [(name, part) for name, part in parts if (contender.name, name) not in self._failed]
        while todo:
            name = todo[0][0]
            try:
                with grouped(contender, self.workers) as group:
                    while todo:
                        name, part = todo[0]
                        results[name] = measure(group, part)
                        todo.pop(0)
            except (PeerFailed, PeerLacks) as exc:
                self._failed.add((contender.name, name))
                self.notes.append(f"{contender.name} failed in {name}: {exc}")
                todo.pop(0)
        return results
