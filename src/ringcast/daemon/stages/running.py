"""A stage that runs: who runs it, the ring that it makes, and what that ring has of the stream. No rules."""

from __future__ import annotations

from ringcast.daemon.rings.ring import DerivedRing
from ringcast.daemon.stages.derivation import oldest_seq
from ringcast.daemon.stages.runners import StageRunner
from ringcast.scaling.temporal import first_due


class Running:
    def __init__(self, runner: StageRunner, ring: DerivedRing, number: int, first_seq: int) -> None:
        self.runner = runner
        self.ring = ring
        self.number = number
        self.first_seq = first_seq

    def has_all_before(self, end: int) -> bool:
        """Whether it has made every due message before `end`."""
        return first_due(self.ring.next_seq, self.ring.every) >= end

    def lacks(self, seq: int) -> bool:
        """Whether it began after messages from `seq` on that its source still holds."""
        return first_due(max(seq, oldest_seq(self.ring.base)), self.ring.every) < self.first_seq
