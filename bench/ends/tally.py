"""Counting what arrives by callback: the same figures as `interface.Sink.drain`, for peers that call us."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


class Tally:
    """One stream being received. `done` is called when the last wanted message is in.

    Begun before the stream is sent: a message that came before the counting would look lost.
    """

    def __init__(self, done: Callable[[], object]) -> None:
        self._done = done
        self.begin(0, sums=False)

    def begin(self, wanted: int, sums: bool) -> None:
        """Start anew, for `wanted` messages; `sums` reads every byte of each."""
        self.received = self._total = self._first_ns = self._last_ns = 0
        self._wanted, self._sums = wanted, sums

    def add(self, body: bytes) -> None:
        """Count one message."""
        if self._sums:
            self._total += int(np.frombuffer(body, dtype=np.uint64).sum())
        self.received += 1
        if self.received == 1:
            self._first_ns = time.perf_counter_ns()
        if self.received == self._wanted:
            self._last_ns = time.perf_counter_ns()
            self._done()

    def report(self) -> dict[str, int]:
        """What a sink's `drain` returns."""
        last = self._last_ns or time.perf_counter_ns()
        return {"first_ns": self._first_ns, "last_ns": last, "received": self.received, "total": self._total}
