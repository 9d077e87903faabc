"""This node's own clock against one that nobody sets: whether it was set, and whether the machine slept. Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple

LEAST_NS = 250_000
SLEWED = 600e-6
"""How fast a clock may be led to the right time without being set: the kernel's most, and a little."""
SLEPT_NS = 50_000_000


class Look(NamedTuple):
    """Read at one moment: the time of day, time since boot, and time since boot without sleep."""

    utc_ns: int
    boot_ns: int
    awake_ns: int


class Noticed(NamedTuple):
    kind: Literal["step", "suspend"]
    by_ns: int
    """The clock was set ahead by so much; the machine slept so long."""


class OwnClock:
    def __init__(self, look: Look) -> None:
        self._last = look

    def look(self, look: Look) -> list[Noticed]:
        """What happened since the last one."""
        last, self._last = self._last, look
        passed = look.boot_ns - last.boot_ns
        noticed = []
        if (slept := passed - (look.awake_ns - last.awake_ns)) > SLEPT_NS:
            noticed.append(Noticed("suspend", slept))
        stepped = (look.utc_ns - last.utc_ns) - passed
        if abs(stepped) > LEAST_NS + SLEWED * passed:
            noticed.append(Noticed("step", stepped))
        return noticed
