"""How much of a range a subscription gets, by what becomes of its messages. Pure.

Messages that are lost, or that are old when they are received, say that something on the way does not carry so much:
a link, or a processor. So do packets, where no message becomes whole of them, and messages that were sent where nothing
comes. Two such looks in a row take it to the
step that what did come would have fitted in, or at least one step down. What waits in queues is then let through before
it is looked at again. Looks without a miss take it up by one step; a step up that fails makes the next wait twice as
long, and one that holds makes it short again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SHARE = 0.02
"""Of the messages may be lost or late without anything being changed: a link may lose some whatever it carries."""
FALL_AFTER = 2
SETTLE = 4
"""Looks after a fall that say nothing: queues are emptied."""
CLIMB_AFTER = 6
MOST_PATIENCE = 16


class Seen(NamedTuple):
    """Since the look before: messages received, and of those late; lost; and received a second of each stream.
    `pieces` are packets that came though no message has become whole for long, `unheard` messages that were sent of
    which nothing came."""

    received: int
    lost: int
    late: int
    hz: float
    pieces: int = 0
    unheard: int = 0

    @property
    def bad(self) -> bool:
        if not self.received and not self.lost:
            return self.pieces > 0 or self.unheard > 0
        return self.lost + self.late > SHARE * (self.received + self.lost)

    @property
    def why(self) -> str:
        total = self.received + self.lost
        if not total and not self.pieces:
            return f"nothing came of the last {self.unheard} messages that were sent"
        if not total:
            return f"no message became whole of {self.pieces} packets that came"
        return (
            f"{self.lost} of {total} messages were lost" if self.lost else f"{self.late} of {total} messages came late"
        )


class Follower:
    """`rates` are those of the steps, the best first; 0 where only sizes differ."""

    def __init__(self, rates: Sequence[float]) -> None:
        self._rates = rates
        self.step = 0
        self.why = ""
        self._bad = self._good = self._settling = 0
        self._patience = 1
        self._climbed = False

    def look(self, seen: Seen) -> bool:
        """Whether the step is another one now. A look at which nothing came says nothing."""
        if not seen.received and not seen.lost and not seen.pieces and not seen.unheard:
            return False
        if self._settling:
            self._settling -= 1
            return False
        if seen.bad:
            self._bad, self._good = self._bad + 1, 0
            return self._bad >= FALL_AFTER and self._fall(seen)
        self._bad, self._good = 0, self._good + 1
        if self._climbed and self._good >= CLIMB_AFTER:
            self._climbed, self._patience = False, 1
        return self._good >= CLIMB_AFTER * self._patience and self._climb()

    def _fall(self, seen: Seen) -> bool:
        self._bad = 0
        if self._climbed:
            self._climbed, self._patience = False, min(MOST_PATIENCE, 2 * self._patience)
        if self.step == len(self._rates) - 1:
            return False
        fitting = (i for i, hz in enumerate(self._rates) if hz and hz <= seen.hz and i > self.step)
        # Where even the least is more than what came, it is tried all the same; sizes go step by step.
        self.step = next(fitting, len(self._rates) - 1) if self._rates[0] else self.step + 1
        self._settling = SETTLE
        self.why = seen.why
        return True

    def _climb(self) -> bool:
        self._good = 0
        if self.step == 0:
            return False
        self.step -= 1
        self._climbed = True
        if self.step == 0:
            self.why = ""
        return True
