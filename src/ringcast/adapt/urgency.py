"""Which class a channel should have, by the deadlines that its messages miss: the agent of paper 003's section 4. Pure.

A channel whose messages miss their deadline too often in several looks one after the other is raised by a class. It is
lowered again, by a class at a time, after many looks without a miss. That is the hysteresis; and because a channel that
was lowered and misses again at once would go up and down for ever, each time that happens the wait before the next
lowering doubles. Invariant: a class is never above `critical`, nor below what the channel had at first.
"""

from __future__ import annotations

from typing import NamedTuple

from ringcast.model.priority import CLASSES, NORMAL

MOST_PATIENCE = 64
"""By how much the wait before a lowering may have grown."""


class Rule(NamedTuple):
    """`share` of messages may miss the deadline; `raise_after` looks above it in a row raise, `lower_after` looks
    without any miss lower."""

    deadline_ns: int
    share: float = 0.01
    raise_after: int = 2
    lower_after: int = 10


class Look(NamedTuple):
    """What was seen since the look before. Messages that were lost missed their deadline."""

    messages: int
    missed: int


class Decision(NamedTuple):
    """From one class to another, and why."""

    before: str
    after: str
    why: str


class Channel:
    """What the agent knows of one channel."""

    def __init__(self, rule: Rule, level: str = NORMAL) -> None:
        self._rule = rule
        self._least = CLASSES.index(level or NORMAL)
        self._level = self._least
        self._bad = self._good = 0
        self._patience = 1
        self._lowered = False

    @property
    def level(self) -> str:
        return CLASSES[self._level]

    def look(self, seen: Look) -> Decision | None:
        """What to change now, if anything. A look without messages says nothing."""
        if not seen.messages:
            return None
        if seen.missed > self._rule.share * seen.messages:
            self._bad, self._good = self._bad + 1, 0
        else:
            self._bad, self._good = 0, self._good + 1 if not seen.missed else 0
        if self._bad >= self._rule.raise_after:
            return self._raise(seen)
        if self._good >= self._rule.lower_after * self._patience:
            return self._lower()
        return None

    def _raise(self, seen: Look) -> Decision | None:
        self._bad = self._good = 0
        if self._level == len(CLASSES) - 1:
            return None
        if self._lowered:
            self._patience = min(MOST_PATIENCE, 2 * self._patience)
            self._lowered = False
        why = (
            f"{seen.missed} of {seen.messages} messages missed their deadline, {self._rule.raise_after} looks in a row"
        )
        return self._to(self._level + 1, why)

    def _lower(self) -> Decision | None:
        calm, self._good = self._good, 0
        if self._level == self._least:
            return None
        self._lowered = True
        return self._to(self._level - 1, f"no message missed its deadline in {calm} looks")

    def _to(self, level: int, why: str) -> Decision:
        before, self._level = self.level, level
        return Decision(before, self.level, why)
