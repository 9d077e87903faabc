"""Scheduling policies of threads, as text and as values: `fifo:30`, `rr:10`, `other`, `deadline:1ms/10ms`. Pure.

`deadline:RUNTIME/PERIOD` gives a thread so much time of a core in every period; with three parts the middle one is the
relative deadline. Invariant: a schedule that was read is one that Linux accepts, if it allows it at all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OTHER = "other"
FIFO = "fifo"
RR = "rr"
DEADLINE = "deadline"
POLICIES = (FIFO, RR, OTHER, DEADLINE)
MOST_PRIORITY = 99
LEAST_RUNTIME_NS = 1_024
LEAST_PERIOD_NS = 100_000
MOST_PERIOD_NS = 4_194_304_000
"""The kernel's own limits (sched_deadline_period_min_us, sched_deadline_period_max_us)."""
MAX_CHARS = 64
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s)")
EXPECTED = "'fifo:1' to 'fifo:99', 'rr:1' to 'rr:99', 'deadline:RUNTIME/PERIOD' as 'deadline:1ms/10ms', or 'other'"


class Schedule(NamedTuple):
    """`priority` is of fifo and rr, the three times of deadline."""

    policy: str = OTHER
    priority: int = 0
    runtime_ns: int = 0
    deadline_ns: int = 0
    period_ns: int = 0

    @property
    def text(self) -> str:
        """What `read` reads."""
        if self.policy in (FIFO, RR):
            return f"{self.policy}:{self.priority}"
        if self.policy == DEADLINE:
            middle = [] if self.deadline_ns == self.period_ns else [self.deadline_ns]
            return f"{DEADLINE}:" + "/".join(show_ns(ns) for ns in (self.runtime_ns, *middle, self.period_ns))
        return OTHER

    @property
    def rank(self) -> tuple[int, int]:
        """Of two threads the one of the larger rank runs: deadline before fifo and rr, those by priority."""
        if self.policy == DEADLINE:
            return 2, -self.deadline_ns
        return (1, self.priority) if self.policy in (FIFO, RR) else (0, 0)

    @property
    def share(self) -> float:
        """Of one core, what a deadline thread may use."""
        return self.runtime_ns / self.period_ns if self.period_ns else 0.0


def read(text: str) -> Schedule:
    """Raises ValueError, which says what was expected."""
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        raise ValueError(f"a schedule is {EXPECTED}")
    policy, _, rest = text.strip().lower().partition(":")
    if policy == OTHER and not rest:
        return Schedule()
    if policy in (FIFO, RR):
        if not rest.isdecimal() or not 1 <= int(rest) <= MOST_PRIORITY:
            raise ValueError(f"the priority of {policy} is a whole number from 1 to {MOST_PRIORITY}, not {rest!r}")
        return Schedule(policy, int(rest))
    if policy == DEADLINE:
        return _deadline(text, rest)
    raise ValueError(f"there is no schedule {text!r}; it is {EXPECTED}")


def duration_ns(text: str) -> int:
    """`1ms`, `250us`, `0.5s`. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no duration; write it as 1ms, 250us or 0.5s")
    return round(float(found[1]) * _UNITS[found[2]])


def show_ns(ns: int) -> str:
    """The shortest text that `duration_ns` reads as the same."""
    unit = next(unit for unit in ("s", "ms", "us", "ns") if ns % _UNITS[unit] == 0)
    return f"{ns // _UNITS[unit]}{unit}"


def _deadline(text: str, rest: str) -> Schedule:
    times = [duration_ns(part) for part in rest.split("/")]
    if len(times) not in (2, 3):
        raise ValueError(f"{text!r} needs a runtime and a period, as deadline:1ms/10ms")
    runtime, deadline, period = times[0], times[-2] if len(times) == 3 else times[-1], times[-1]
    if not LEAST_PERIOD_NS <= period <= MOST_PERIOD_NS:
        least, most = show_ns(LEAST_PERIOD_NS), show_ns(MOST_PERIOD_NS)
        raise ValueError(f"the period of {text!r} must be from {least} to {most}")
    if not LEAST_RUNTIME_NS <= runtime <= deadline <= period:
        raise ValueError(
            f"{text!r} must have runtime <= deadline <= period, and a runtime of at least {LEAST_RUNTIME_NS} ns"
        )
    return Schedule(DEADLINE, 0, runtime, deadline, period)
