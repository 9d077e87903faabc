"""What is known of another node's clock at one moment. A pure value."""

from __future__ import annotations

import msgspec


class ClockReading(msgspec.Struct, frozen=True, kw_only=True):
    """Another node's clock as this node sees it. The offset is off by no more than the bound: that follows from the
    delays of the probes and not from how they are spread."""

    offset_ns: int
    """How far it is ahead of this node's clock."""
    drift: float
    """By how much that grows, in seconds a second."""
    bound_ns: int
    """The offset's error is no more."""
    half_round_trip_ns: int
    """Half of the mean round trip of the probes: the LabMap paper's bound, beside ours."""
    fastest_ns: int
    """The shortest round trip of a probe."""
    probes: int
    """From which this was reckoned."""
