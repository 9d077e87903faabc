"""What a publisher declares of its stream, so that deadlines can be promised to others. Pure values."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

OnExcess = Literal["wait", "drop"]
JITTER = 0.1
"""How much of its period a publisher may be early, unless it says so: programs that sleep are never exact."""


class Declared(msgspec.Struct, frozen=True, omit_defaults=True):
    """At most one message of `max_bytes` every `period_s`, each up to `jitter_s` early, after computing for
    `compute_s`."""

    period_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**40)]
    compute_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    jitter_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0


def declared(
    period_s: float | None, max_bytes: int | None, compute_s: float, jitter_s: float | None
) -> Declared | None:
    """None when nothing is declared. Raises ValueError."""
    if period_s is None and max_bytes is None:
        if compute_s or jitter_s:
            raise ValueError("compute_s and jitter_s belong to a declared stream: give period_s and max_bytes too")
        return None
    if period_s is None or max_bytes is None:
        raise ValueError("a stream is declared by period_s and max_bytes together: give both, or neither")
    if not 0 < period_s < math.inf:
        raise ValueError(f"period_s is seconds between two messages, above 0, not {period_s!r}")
    if not isinstance(max_bytes, int) or max_bytes < 1:
        raise ValueError(f"max_bytes is the size of the largest message, from 1 on, not {max_bytes!r}")
    if not 0 <= compute_s < math.inf:
        raise ValueError(f"compute_s is seconds of computing before a message, from 0 on, not {compute_s!r}")
    early = JITTER * period_s if jitter_s is None else jitter_s
    if not 0 <= early < math.inf:
        raise ValueError(f"jitter_s is how much early a message may be, from 0 on, not {jitter_s!r}")
    return Declared(period_s, max_bytes, compute_s, early)


class Bucket:
    """Lets one message through every period, each up to the jitter early (the generic cell rate algorithm): what comes
    out of it is what the analysis was told. Time is an argument."""

    def __init__(self, of: Declared) -> None:
        self._period_ns = round(of.period_s * 1e9)
        self._early_ns = round(of.jitter_s * 1e9)
        self._next_ns = 0

    def wait_ns(self, now_ns: int) -> int:
        """How long until the next message may go; 0 is now."""
        return max(0, self._next_ns - self._early_ns - now_ns)

    def take(self, now_ns: int) -> None:
        """A message goes."""
        self._next_ns = max(self._next_ns, now_ns) + self._period_ns
