"""One question to another node and its answer, as four times: what it says of the other node's clock. Pure.

What the two directions differ is invisible to any exchange. Whatever they are, the offset is off by at most half of the
delay: the truth lies where the answer left and the question had arrived.
"""

from __future__ import annotations

from typing import NamedTuple

RESOLUTION_NS = 1_000
"""Between reading a clock and what is stamped with it."""


class Exchange(NamedTuple):
    """Sent and received by this node's clock, heard and answered by the other's; `taken_ns` by a clock that nobody
    sets."""

    asked_ns: int
    heard_ns: int
    answered_ns: int
    received_ns: int
    taken_ns: int

    @property
    def offset_ns(self) -> float:
        """How far the other clock is ahead, if both ways took equally long."""
        return ((self.heard_ns - self.asked_ns) + (self.answered_ns - self.received_ns)) / 2

    @property
    def delay_ns(self) -> int:
        """On the way, both ways together."""
        return (self.received_ns - self.asked_ns) - (self.answered_ns - self.heard_ns)

    @property
    def possible(self) -> bool:
        """False when a clock was set between the four times."""
        return self.delay_ns >= -RESOLUTION_NS and self.answered_ns >= self.heard_ns
