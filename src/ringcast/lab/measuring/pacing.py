"""How often something is repeated when there is a time by which it should be done. Pure but for the clock it is given.

All experiments in their quick forms are to end soon on any machine. Each says how long its repetitions may take: a slow
machine then has fewer of them, and no row is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator


def paced(wanted: int, least: int, most_s: float, now_s: Callable[[], float]) -> Iterator[int]:
    """Numbers from 0, `wanted` of them; after `least`, none that would hardly end within `most_s` of the first."""
    began = now_s()
    for number in range(wanted):
        taken = now_s() - began
        if number >= max(least, 1) and taken + taken / number > most_s:
            return
        yield number
