"""How stale what was pulled may be: T + D, a publisher's period and the delay: of the pull, and of the way from the
publisher to where it was pulled. Pure.

The period is the longest of the last gaps between messages, not their mean: a bound is wanted, and publishers jitter.
Nothing bounds it when the publisher has left, or has sent less than two messages: it is infinite then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

GAPS = 16
"""How many of the last gaps are looked at."""


def longest_gap_ns(times_ns: Iterable[int]) -> int:
    """Between times from the newest to the oldest; 0 when there are less than two."""
    return max((later - earlier for later, earlier in itertools.pairwise(times_ns)), default=0)


def bound_s(period_ns: int, delay_s: float) -> float:
    return period_ns / 1e9 + delay_s if period_ns > 0 else math.inf
