"""One run of benchmarks: its contenders, its length, what went wrong, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from harness.cast import Contender
from harness.process import PeerFailed, PeerLacks

T = TypeVar("T")


@dataclass
class Run:
    """What a benchmark gets to work with.

    `advance` moves the progress bar by one of the steps announced by `expect`.
    """

    contenders: tuple[Contender, ...]
    cores: list[int]
    folder: Path
    quick: bool
    expect: Callable[[str, int], None]
    advance: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    _failed: set[tuple[str, str]] = field(default_factory=set)

    def offering(self, what: str) -> list[Contender]:
        """The contenders that can do `what`."""
        return [contender for contender in self.contenders if what in contender.offers]

    def alternate(self, what: str, rounds: int, who: list[Contender]) -> Iterator[tuple[int, Contender]]:
        """Every contender once per round, each round in the opposite order: the machine's drift hits all alike."""
        self.expect(what, rounds * len(who))
        for number in range(rounds):
            for contender in who if number % 2 == 0 else reversed(who):
                self.advance(f"{what}: {contender.name}")
                yield number, contender

    def attempt(self, what: str, contender: Contender, measure: Callable[..., T], *arguments: Any) -> T | None:
        """The measurement's result, or None with a note why not. One that failed is not tried again in this run."""
        if (what, contender.name) in self._failed:
            return None
        try:
            return measure(*arguments)
        except (PeerFailed, PeerLacks) as exc:
            self._failed.add((what, contender.name))
            self.notes.append(f"{contender.name} failed in {what}: {exc}")
            return None
