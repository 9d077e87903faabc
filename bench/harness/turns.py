"""Several contenders open at the same time, so that they are measured in turns of a fraction of a second.

What the machine does meanwhile then meets all of them alike, also where it changes within seconds, and a ratio of two
neighbours in time says more than a ratio of two medians. One that fails in a part is noted and not asked for that part
again; for the others it gets fresh processes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from harness.contenders import Contender
from harness.group import Group, grouped
from harness.process import PeerFailed, PeerLacks
from harness.run import Run

Opened = TypeVar("Opened")
T = TypeVar("T")


class Turns(Generic[Opened]):
    """Groups by contender. `start` opens the ends of a group, and may be asked again after a failure."""

    def __init__(self, run: Run, what: str, start: Callable[[Group], Opened]) -> None:
        self._run = run
        self._what = what
        self._start = start
        self._open: dict[str, tuple[contextlib.ExitStack, Opened]] = {}
        self._failed: set[tuple[str, str]] = set()

    def take(self, part: str, number: int, who: Sequence[Contender], measure: Callable[[Opened], T]) -> dict[str, T]:
        """`measure` of each, in the opposite order in every other round; of those that went well."""
        results: dict[str, T] = {}
        for contender in who if number % 2 == 0 else reversed(who):
            if (contender.name, part) in self._failed:
                continue
            try:
                results[contender.name] = measure(self._opened(contender))
            except (PeerFailed, PeerLacks) as exc:
                self._failed.add((contender.name, part))
                reason = self._abandon(contender, exc)
                self._run.notes.append(f"{contender.name} failed in {self._what} ({part}): {reason}")
        return results

    def _opened(self, contender: Contender) -> Opened:
        if contender.name not in self._open:
            with contextlib.ExitStack() as stack:
                opened = self._start(stack.enter_context(grouped(contender, self._run.workers)))
                self._open[contender.name] = (stack.pop_all(), opened)
        return self._open[contender.name][1]

    def _abandon(self, contender: Contender, exc: BaseException) -> BaseException:
        """End its processes; what is to be told of the failure."""
        stack, _ = self._open.pop(contender.name, (contextlib.ExitStack(), None))
        try:
            stack.__exit__(type(exc), exc, exc.__traceback__)
        except PeerFailed as told:
            return told
        return exc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        ending = contextlib.ExitStack()
        for stack, _ in self._open.values():
            ending.push(stack)
        ending.__exit__(kind, value, trace)
