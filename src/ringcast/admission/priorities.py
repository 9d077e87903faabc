"""Who goes first: a class for every stream, and an order inside the class by deadline. Pure.

Deadline-monotonic: the shorter the deadline, the higher the priority. Classes are bands of deadlines that do not depend
on other streams, so that a stream which was admitted keeps its class when others come and go, and so that adding a
stream never shortens the bound of another.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ringcast.admission.model import CLASSES, Class, System

BANDS: tuple[tuple[float, Class], ...] = ((0.010, "critical"), (0.100, "high"), (math.inf, "normal"))
"""A deadline of at most so many seconds makes this class. Without a deadline the class is low."""
HIGHEST_FIFO, LOWEST_FIFO = 45, 10
"""Thread priorities that are given out: below 50, where Linux has the threads of network cards."""


class Rank(NamedTuple):
    """Compares as who goes first: the smaller, the sooner."""

    below: int
    """How many classes are above this one."""
    deadline_s: float
    name: str


def class_of(deadline_s: float) -> Class:
    """What a deadline asks for."""
    if math.isinf(deadline_s):
        return "low"
    return next(name for most, name in BANDS if deadline_s <= most)


def rank(deadline_s: float, name: str, priority: Class | None = None) -> Rank:
    return Rank(len(CLASSES) - 1 - CLASSES.index(priority or class_of(deadline_s)), deadline_s, name)


def class_of_rank(found: Rank) -> Class:
    return CLASSES[len(CLASSES) - 1 - found.below]


def shared(priority: Class) -> Rank:
    """Of a node's thread that serves all streams of that class and the ones below: above those streams' programs."""
    return Rank(len(CLASSES) - 1 - CLASSES.index(priority), -1.0, "")


def fifo_priorities(system: System) -> dict[str, int]:
    """SCHED_FIFO priority of every stream with a deadline, by tag. When there are more streams than priorities,
    neighbours share one."""
    ranks = sorted(
        rank(stream.deadline_s, stream.tag, stream.priority)
        for stream in system.streams
        if math.isfinite(stream.deadline_s)
    )
    room = HIGHEST_FIFO - LOWEST_FIFO + 1
    width = max(1, math.ceil(len(ranks) / room))
    return {found.name: HIGHEST_FIFO - i // width for i, found in enumerate(ranks)}
