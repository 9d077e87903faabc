"""Who goes first: a class for every stream, and an order inside the class by deadline. Pure.

Deadline-monotonic: the shorter the deadline, the higher the priority. Classes are bands of deadlines that do not depend
on other streams, so that a stream which was admitted keeps its class when others come and go, and so that adding a
stream never shortens the bound of another.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ringcast.admission.model import CLASSES, Class, System

BANDS: tuple[tuple[float, Class], ...] = ((0.010, "critical"), (0.100, "high"), (math.inf, "normal"))
"""A deadline of at most so many seconds makes this class. Without a deadline the class is low."""
OWN_THREAD: tuple[Class, ...] = ("high", "critical")
"""Classes whose channels have threads of their own."""
HIGHEST_FIFO, LOWEST_FIFO = 45, 10
"""Thread priorities that are given out: below 50, where Linux has the threads of network cards."""

_FIRST_RUNG_S, _RUNGS_PER_DECADE = 0.0005, 13
"""Of priorities that depend on nobody else's deadline: the highest is for at most so many seconds."""

Named = TypeVar("Named", bound=Hashable)


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


def rung(deadline_s: float) -> int:
    """SCHED_FIFO priority for a deadline, whatever other deadlines there are: of two that differ by a fifth, the
    shorter one's is higher. So nobody's threads change when somebody else comes."""
    below = math.floor(_RUNGS_PER_DECADE * math.log10(max(deadline_s, _FIRST_RUNG_S) / _FIRST_RUNG_S) + 1e-9)
    return max(LOWEST_FIFO, HIGHEST_FIFO - below)


def by_default(deadline_s: float) -> tuple[Class, str]:
    """The class and the schedule that channels of an admitted stream have when nobody says anything else; '' is no
    schedule."""
    level = class_of(deadline_s)
    return level, f"fifo:{rung(deadline_s)}" if level in OWN_THREAD else ""


def rung_rank(deadline_s: float, name: str, priority: Class | None = None) -> Rank:
    """As `rank`, where threads have the schedules of `by_default`: those of one rung are equal, and so are all that
    have a deadline and no schedule."""
    if math.isinf(deadline_s):
        return rank(deadline_s, name, priority)
    level, sched = by_default(deadline_s)
    place = float(HIGHEST_FIFO - rung(deadline_s)) if sched else math.inf
    return Rank(len(CLASSES) - 1 - CLASSES.index(priority or level), place, "")


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
    return _given_out([found.name for found in ranks])


def assigned(deadlines: Mapping[Named, float]) -> dict[Named, tuple[Class, str]]:
    """A class and a schedule for whatever has a deadline, the shortest first; equal deadlines have equal ones. '' is no
    schedule: what may take longer than a tenth of a second needs none."""
    numbers = _given_out(sorted(set(deadlines.values())))
    found: dict[Named, tuple[Class, str]] = {}
    for name, deadline_s in deadlines.items():
        level = class_of(deadline_s)
        found[name] = (level, f"fifo:{numbers[deadline_s]}" if level in OWN_THREAD else "")
    return found


def _given_out(first: Sequence[Named]) -> dict[Named, int]:
    """SCHED_FIFO priorities to these, in order. When there are more than priorities, neighbours share one."""
    width = max(1, math.ceil(len(first) / (HIGHEST_FIFO - LOWEST_FIFO + 1)))
    return {name: HIGHEST_FIFO - i // width for i, name in enumerate(first)}
