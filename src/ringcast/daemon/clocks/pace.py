"""How often one node's clock is probed. Pure: times are arguments, in seconds of the loop's clock.

Closely while messages come from that node, while somebody asks about its clock, and for a while after; otherwise
seldom, so that a mesh that does nothing costs next to nothing, however many nodes it has.
"""

from __future__ import annotations

SAME_PERIOD_S = 1.0
"""Of a node with the very clock that this one has: only to see that it has."""
RESTING_PERIOD_S = 10.0
"""Of a node of which nothing is wanted."""
WANTED_S = 60.0
"""How long a node is probed closely after its clock was last of use."""
FIRST_PERIOD_S = 0.005
FIRST_PROBES = 8
MORE = 5
"""Times as many probes go to a node while its bound is wider than its path allows."""


class Pace:
    """`period_s` is that of a node which is probed closely."""

    def __init__(self, period_s: float) -> None:
        self.due_s = 0.0
        self._period_s = period_s
        self._sent = 0
        self._wanted_until_s = 0.0

    def begin(self, now_s: float) -> None:
        """It may be probed from now on, the first times in quick succession."""
        self._sent, self.due_s = 0, now_s

    def want(self, now_s: float) -> bool:
        """Its clock is of use; whether it was not before, so that it is to be probed at once."""
        rested = self._wanted_until_s <= now_s
        self._wanted_until_s = now_s + WANTED_S
        return rested

    def probed(self, now_s: float, *, same: bool, wide: bool, slowest_s: float) -> None:
        """A probe left. `same`: it has this node's clock; `wide`: its bound is; `slowest_s`: nobody has a shorter
        period, because there are so many."""
        self._sent += 1
        # From when it was due and not from now, so that a busy loop does not make them fewer.
        self.due_s = max(self.due_s + self._pause_s(now_s, same, wide, slowest_s), now_s)

    def _pause_s(self, now_s: float, same: bool, wide: bool, slowest_s: float) -> float:
        if self._sent < FIRST_PROBES and not same:
            return FIRST_PERIOD_S
        if self._wanted_until_s <= now_s:
            return max(RESTING_PERIOD_S, self._period_s)
        period_s = self._period_s / MORE if wide else self._period_s
        return max(period_s, SAME_PERIOD_S if same else 0.0, slowest_s)
