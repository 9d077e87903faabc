"""Limits repeated log lines: the first few in a minute are logged, the rest are counted. Pure: time is an argument.

The number of keys is bounded; beyond it all new keys share one. Invariant: every line that is not logged is counted
exactly once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ringcast.control.limits import LOG_KINDS, LOG_LINES_PER_MINUTE

WINDOW_NS = 60 * 1_000_000_000
_OTHERS = ("others",)


class _Window:
    __slots__ = ("begin_ns", "left_out", "said", "sample")

    def __init__(self, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self.said = 0
        self.left_out = 0
        self.sample: Any = None


class RateLimit:
    def __init__(self, per_window: int = LOG_LINES_PER_MINUTE, max_keys: int = LOG_KINDS) -> None:
        self.suppressed = 0
        """How much was left out in all."""
        self._per_window = per_window
        self._max_keys = max_keys
        self._windows: dict[Hashable, _Window] = {}

    def admits(self, key: Hashable, now_ns: int, sample: Any = None, count: int = 1) -> bool:
        """Whether to say it, which stands for `count`; if not they are counted. `sample` is given back with the sum, to
        say what it was."""
        if key not in self._windows and len(self._windows) >= self._max_keys:
            key = _OTHERS
        window = self._windows.setdefault(key, _Window(now_ns))
        if window.said < self._per_window:
            window.said += 1
            return True
        window.left_out += count
        window.sample = sample
        self.suppressed += count
        return False

    def due_ns(self) -> int | None:
        """When there will be something to sum up; None while nothing was left out."""
        begins = [window.begin_ns for window in self._windows.values() if window.left_out]
        return min(begins) + WINDOW_NS if begins else None

    def take_sums(self, now_ns: int) -> list[tuple[int, Any]]:
        """(how many were left out, the last of them) of every minute that is over. Those may be said again."""
        over = [key for key, window in self._windows.items() if now_ns - window.begin_ns >= WINDOW_NS]
        windows = [self._windows.pop(key) for key in over]
        return [(window.left_out, window.sample) for window in windows if window.left_out]
