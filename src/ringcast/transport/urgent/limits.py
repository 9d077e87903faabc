"""What this node's administrator lets channels have of its threads, whoever asks: `[limits]` of `ringcast.toml`.

One for the process: its channels share its threads' rights. Invariant: reservations that are let in here never add up
to more than `cores`, whichever threads take and give back.
"""

from __future__ import annotations

import threading
from collections.abc import Container

from ringcast.model.schedule import DEADLINE, FIFO, MOST_PRIORITY, RR, Schedule


class Limits:
    """`priority` is the highest of fifo and rr, 0 is neither; `cores` is what all reservations may take together, None
    is as much as the kernel grants. Who takes is named by the publisher whose stream the thread carries, 0 where
    nobody asks."""

    def __init__(self, priority: int = MOST_PRIORITY, cores: float | None = None) -> None:
        self.priority = priority
        self.cores = cores
        self._taken: list[tuple[int, float]] = []
        self._turn = threading.Lock()

    def refusal(self, wanted: Schedule, replaced: Container[int] = ()) -> str:
        """In words why a channel's thread may not have it once the channels of these publishers are gone; '' when it
        may."""
        with self._turn:
            return self._refusal(wanted, replaced)

    def take(self, wanted: Schedule, publisher: int = 0) -> str:
        """Count a reservation as taken, to be given back; or in words why there is none for it."""
        with self._turn:
            refused = self._refusal(wanted, ())
            if not refused:
                self._taken.append((publisher, wanted.share))
            return refused

    def give_back(self, wanted: Schedule, publisher: int = 0) -> None:
        with self._turn:
            if (publisher, wanted.share) in self._taken:
                self._taken.remove((publisher, wanted.share))

    def share_of(self, publishers: Container[int]) -> float:
        """The largest reservation that a thread has for one of these publishers."""
        with self._turn:
            return max((share for publisher, share in self._taken if publisher in publishers), default=0.0)

    def _refusal(self, wanted: Schedule, replaced: Container[int]) -> str:
        if wanted.policy in (FIFO, RR) and wanted.priority > self.priority:
            most = f"at most {wanted.policy}:{self.priority}" if self.priority else f"no {wanted.policy}"
            return f"this node lets channels have {most} (limits.sched_priority)"
        taken = sum(share for publisher, share in self._taken if publisher not in replaced)
        if wanted.policy == DEADLINE and self.cores is not None and taken + wanted.share > self.cores + 1e-9:
            left = max(0.0, self.cores - taken)
            return f"of {self.cores:g} cores that channels may reserve here {left:.2f} are left (limits.sched_share)"
        return ""


LIMITS = Limits()
"""Of this process."""
