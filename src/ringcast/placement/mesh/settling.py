"""When a better plan is reason enough to move proxies: hysteresis, so that streams do not wander. Pure: time is given.

One `Settling` for all that a daemon places. What serves a subscriber no longer (its node died, its deadline is missed,
a capacity is exceeded) is replaced at once. What merely costs more than it could is replaced when the better plan
saves at least `saving` of what the streams cost that may be moved, has done so for `hold_s`, and the last move is
`rest_s` ago. Measurements differ from one time to the next: what flickers between two plans for less than `hold_s`
moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringcast.placement import charges, delay, plan
from ringcast.placement.case import Case
from ringcast.placement.plan import Plan

SAVING, HOLD_S, REST_S = 0.1, 5.0, 30.0


@dataclass(frozen=True)
class Decision:
    """`why` is a sentence; `again_s` is when it may be decided otherwise, None when time alone changes nothing."""

    move: bool
    why: str
    again_s: float | None = None


class Settling:
    """Remembers when a better plan was first seen, and when the last move was."""

    def __init__(self, saving: float = SAVING, hold_s: float = HOLD_S, rest_s: float = REST_S) -> None:
        self._saving, self._hold_s, self._rest_s = saving, hold_s, rest_s
        self._better_since: float | None = None
        self._moved_at: float | None = None

    def decide(self, now_s: float, case: Case, current: tuple[int | None, ...], best: Plan) -> Decision:
        """`current` are the places by number as they are now, None where there is none or its node is gone; `best` is
        the plan for the same case. The caller moves at once when told to."""
        if not best.feasible:
            self._better_since = None
            return Decision(False, "no plan fits; what runs stays: " + "; ".join(one.sentence for one in best.reasons))
        if current == best.places:
            self._better_since = None
            return Decision(False, "every proxy is at its best place")
        if broken := wrong(case, current):
            return self._move(now_s, broken)
        now = plan.made(case, [place for place in current if place is not None]).cost
        # What nobody may move is no reason to leave the rest where it is, however much it costs.
        movable = now - _fixed(case)
        saved = (now - best.cost) / movable if movable > 0 else 0.0
        if saved < self._saving:
            self._better_since = None
            return Decision(False, f"the best places would save {saved:.1%}, less than {self._saving:.0%}")
        if self._better_since is None:
            self._better_since = now_s
        ready = self._better_since + self._hold_s
        if self._moved_at is not None:
            ready = max(ready, self._moved_at + self._rest_s)
        if now_s < ready:
            return Decision(False, f"the best places save {saved:.1%}; waiting whether that lasts", ready)
        return self._move(now_s, f"the best places save {saved:.1%}")

    def _move(self, now_s: float, why: str) -> Decision:
        self._moved_at, self._better_since = now_s, None
        return Decision(True, why)


def _fixed(case: Case) -> float:
    """What the streams alone cost whose proxies are where they are."""
    held = [
        (index, case.routes.number[stream.subscriber.proxy])
        for index, stream in enumerate(case.streams)
        if stream.subscriber.proxy is not None
    ]
    return charges.total(case, (use for index, node in held for use in charges.uses(case, index, node))).cost(
        case.problem
    )


def wrong(case: Case, current: tuple[int | None, ...]) -> str:
    """What the present places do not fulfil, as a sentence; '' when they will do."""
    for stream, place in zip(case.streams, current, strict=True):
        name = f"subscriber {stream.subscriber.name!r} of tag {stream.demand.tag!r}"
        if place is None or place not in case.hosts:
            return f"the proxy of {name} has no node"
        late = delay.worst_case(case, stream, place).total_s
        if not delay.in_time(late, stream.deadline_s):
            return f"{name} gets data after {late:.4g} s, and {stream.deadline_s:.4g} s are allowed"
    places = [place for place in current if place is not None]
    if not charges.loads(case, places).fits(case.problem):
        return "a link or a node carries more than it may"
    return "" if charges.within_proxies(case, places) else "a tag has proxies on more nodes than it may"
