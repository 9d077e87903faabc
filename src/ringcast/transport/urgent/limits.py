"""What this node's administrator lets channels have of its threads, whoever asks: `[limits]` of `ringcast.toml`.

One for the process: its channels share its threads' rights. Invariant: reservations that are let in here never add up
to more than `cores`.
"""

from __future__ import annotations

from ringcast.model.schedule import DEADLINE, FIFO, MOST_PRIORITY, RR, Schedule


class Limits:
    """`priority` is the highest of fifo and rr, 0 is neither; `cores` is what all reservations may take together, None
    is as much as the kernel grants."""

    def __init__(self, priority: int = MOST_PRIORITY, cores: float | None = None) -> None:
        self.priority = priority
        self.cores = cores
        self._taken = 0.0

    def refusal(self, wanted: Schedule) -> str:
        """In words why a channel's thread may not have it now; '' when it may."""
        if wanted.policy in (FIFO, RR) and wanted.priority > self.priority:
            most = f"at most {wanted.policy}:{self.priority}" if self.priority else f"no {wanted.policy}"
            return f"this node lets channels have {most} (limits.sched_priority)"
        if wanted.policy == DEADLINE and self.cores is not None and self._taken + wanted.share > self.cores + 1e-9:
            left = max(0.0, self.cores - self._taken)
            return f"of {self.cores:g} cores that channels may reserve here {left:.2f} are left (limits.sched_share)"
        return ""

    def take(self, wanted: Schedule) -> float:
        """Count a reservation as taken; give back what this returns."""
        self._taken += wanted.share
        return wanted.share

    def give_back(self, share: float) -> None:
        self._taken = max(0.0, self._taken - share)


LIMITS = Limits()
"""Of this process."""
