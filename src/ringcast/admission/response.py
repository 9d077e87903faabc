"""How long work takes on a node whose processors always run the threads of highest priority. Pure, in nanoseconds.

Three bounds, of which the smallest counts:

- As if there were one core: the exact response-time analysis with jitter and blocking, over all jobs of a busy period
  (Tindell). It holds for several cores too, because while something is to be done at least one core does it.
- Several cores: threads go to any core. A job waits only while every core does other work, so of each piece of other
  work no more counts than the job waits for (Bertogna and Cirinei). At most (cores - 1) pieces that began before the
  job delay it more than they would from a standing start (Guan et al.).
  Whoever is preempted is moved to another core, which takes time though no core is busy then: that of all jobs counts.
- A thread that serves several streams in the order of their messages (`thread`): each waits for one job of every other.

The last two need every job to end before the next of its kind begins. Infinite means: no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from ringcast.admission.priorities import Rank

HORIZON_NS = 10**11
"""What takes longer than this has no bound that is of use to anybody."""
_MOST_JOBS = 10_000
_Released = tuple[tuple[float, int, int], ...]
"""Jitter, period and time of work that is released again and again."""


class Work(NamedTuple):
    """One recurring piece of work. `response_ns` is how long it takes at most as far as that is known; `switch_ns` is
    what each job costs those that it preempts, beside its own time."""

    rank: Rank
    compute_ns: int
    period_ns: int
    jitter_ns: float = 0
    thread: str = ""
    response_ns: float = 0
    switch_ns: int = 0


def response_ns(own: Work, others: Sequence[Work], cores: int = 1, blocking_ns: int = 0) -> float:
    """From when a job is ready until it is done, at most."""
    beside = [one for one in others if own.thread and one.thread == own.thread]
    above = [one for one in others if one.rank <= own.rank and not (own.thread and one.thread == own.thread)]
    if any(math.isinf(one.jitter_ns) or math.isinf(one.response_ns) for one in (own, *beside, *above)):
        return math.inf
    found = _one_core(own, [*above, *beside], blocking_ns)
    if (cores == 1 and not beside) or not all(_ends_in_time(one) for one in (*above, *beside)):
        return found
    in_order = blocking_ns + sum(one.compute_ns for one in beside)
    other = (_one_core if cores == 1 else partial(_several_cores, cores=cores))(own, above, in_order)
    return min(found, other) if other + own.jitter_ns <= own.period_ns else found


def _ends_in_time(one: Work) -> bool:
    return one.response_ns + one.jitter_ns <= one.period_ns


def _one_core(own: Work, above: Sequence[Work], at_once: int) -> float:
    # Ranges and their least and most are judged many times with nearly the same work.
    return _busy_core(own.compute_ns, own.period_ns, own.jitter_ns, _merged(above), at_once)


def _merged(above: Sequence[Work]) -> _Released:
    """Work that is released at the same times counts as one."""
    found: dict[tuple[float, int], int] = {}
    for one in above:
        key = one.jitter_ns, one.period_ns
        found[key] = found.get(key, 0) + one.compute_ns + one.switch_ns
    return tuple(sorted((*key, cost) for key, cost in found.items()))


@lru_cache(maxsize=2048)
def _busy_core(compute_ns: int, period_ns: int, jitter_ns: float, above: _Released, at_once: int) -> float:
    if _is_over([(compute_ns, period_ns), *((cost, period) for _, period, cost in above)], 1):
        return math.inf
    worst: float = 0
    busy: float = 0
    for job in range(_MOST_JOBS):
        own_ns = (job + 1) * compute_ns + at_once
        busy = max(busy, own_ns)
        while True:  # until what was released meanwhile is done; by far the most of an analysis' time is spent here
            longer: float = own_ns
            for jitter, period, cost in above:
                longer += -(-(busy + jitter) // period) * cost
            if longer <= busy:
                break
            busy = longer
            if busy > HORIZON_NS:
                return math.inf
        worst = max(worst, busy - job * period_ns)
        if busy <= (job + 1) * period_ns - jitter_ns:
            return worst
    return math.inf


def _several_cores(own: Work, above: Sequence[Work], at_once: int, cores: int) -> float:
    asked = [(own.compute_ns, own.period_ns), *((one.compute_ns + one.switch_ns, one.period_ns) for one in above)]
    if _is_over(asked, cores):
        return math.inf

    def longer(x: float) -> float:
        done = [(_fresh_ns(one, x), max(_fresh_ns(one, x), _carried_ns(one, x))) for one in above]
        return own.compute_ns + at_once + _kept_waiting_ns(done, cores) + sum(_switched_ns(one, x) for one in above)

    return _until_stable(own.compute_ns + at_once, longer)


def _kept_waiting_ns(done: Sequence[tuple[float, float]], cores: int) -> int:
    """How long all cores can do other work at once. `done` is, of each piece, what it does from a standing start and
    what it does if it began before."""

    def fill(wait: int) -> bool:
        started = [min(fresh, wait) for fresh, _ in done]
        more = sorted((min(carried, wait) - min(fresh, wait) for fresh, carried in done), reverse=True)
        return sum(started) + sum(more[: cores - 1]) >= cores * wait

    # Of each piece the share of the wait that it fills gets smaller the longer the wait is: where they cannot fill it,
    # they fill no longer one.
    low, high = 0, math.ceil(sum(carried for _, carried in done) / cores) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fill(middle) else (low, middle)
    return low


def _until_stable(start: float, longer: Callable[[float], float]) -> float:
    x = start
    while x <= HORIZON_NS:
        new = longer(x)
        if new <= x:
            return x
        x = new
    return math.inf


def _switched_ns(one: Work, window: float) -> float:
    """What jobs that are released in a window, or were before and are not done, cost those that they preempt."""
    return -(-(window + one.jitter_ns + one.response_ns) // one.period_ns) * one.switch_ns


def _fresh_ns(one: Work, window: float) -> float:
    """Work done in a window of work that had nothing unfinished at its beginning."""
    whole, rest = divmod(window + one.jitter_ns, one.period_ns)
    return whole * one.compute_ns + min(one.compute_ns, rest)


def _carried_ns(one: Work, window: float) -> float:
    """The same when its first job was released before, and is done as late as it ever is."""
    reach = max(0, window + one.jitter_ns + one.response_ns - one.compute_ns)
    whole, rest = divmod(reach, one.period_ns)
    return whole * one.compute_ns + min(one.compute_ns, rest)


def _is_over(asked: Iterable[tuple[int, int]], cores: int) -> bool:
    """Whether more is asked for than there is, by time and period of each. By integers: of floats, the last bit would
    decide about a full core."""
    numerator, denominator = 0, 1
    for time_ns, period_ns in asked:
        numerator = numerator * period_ns + time_ns * denominator
        denominator *= period_ns
    return numerator > cores * denominator


def utilisation(all_: Sequence[Work]) -> float:
    """Cores that are busy on average."""
    return math.fsum(one.compute_ns / one.period_ns for one in all_)
