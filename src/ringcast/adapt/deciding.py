"""Whether what may carry a tag better than now is worth a change. Pure.

A change costs: the better one must be better by a margin, and on a thin line by as much as messages wait while nodes
agree on another channel (`toll`), look after look (`SETTLED`), and the last change must be `REST_S` ago, or twice as
long each time that it would go back to where it came from. So in a steady environment nothing wanders. When what
carries the stream now is no candidate any more (`ranking`), the change is made at once; where the line is the reason,
to other parameters of the same channel first, if these fit, and from these to whatever is better in the next judgement.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import Candidate, cost
from ringcast.adapt.ranking import Ranking
from ringcast.adapt.wanting import Wish

SETTLED = 2
REST_S = 5.0
LONGEST_REST_S = 600.0
LONGEST_RELIEF_S = 3.0
"""So long a queue may take to empty, once what filled it was replaced."""
CHANGE_BYTES = 4_000
"""About what changing a node to another channel takes of the line: agreeing on it, and what it would miss meanwhile."""
LASTS_S = 60.0
"""How long a choice is expected to hold."""
NEARLY_NOTHING = 0.01
ENOUGH = 30
"""Messages; fewer say nothing of a loss."""

_new = tuple.__new__
_USUAL = Wish("relate2")


class Decision(NamedTuple):
    """`change` is whether to carry the stream differently from now on. Its reason is written when it is asked for."""

    transport: str
    change: bool
    reason: str
    about: tuple[object, ...] = ()

    @property
    def why(self) -> str:
        return self.reason.format(*self.about)


class Deciding:
    """For one wish on one tag."""

    def __init__(self, settled: int = SETTLED, rest_s: float = REST_S) -> None:
        self._settled = settled
        self._first_rest_s = self._rest_s = rest_s
        self._better = ("", 0)
        """What was better than the present one, and in how many looks after each other."""
        self._left: dict[str, float] = {}
        """What carried it before, and until when."""
        self._not_before = -math.inf
        self._relieved_s = -math.inf
        """When what carries it was taken in haste; never, once it was judged again."""

    @property
    def relieved(self) -> bool:
        """Whether what carries it was taken in haste: the next judgement may choose anew, without looking twice."""
        return self._relieved_s > -math.inf

    def waits(self, now_s: float, line_is_busy: bool) -> bool:
        """Whether that judgement had better wait: nodes agree on another channel through the queue, and while they do,
        each is sent what it would miss."""
        return line_is_busy and now_s < self._relieved_s + LONGEST_RELIEF_S

    @property
    def wavers(self) -> bool:
        """Whether something else looked better last time and must do so once more, or may be chosen anew. What has done
        so and only waits for its time is in no hurry."""
        return self.relieved or 0 < self._better[1] < self._settled

    def pause(self) -> None:
        """Nothing is sent any more, so no queue grows: what was taken in haste stays, like anything else."""
        self._relieved_s = -math.inf

    def decide(
        self, now_s: float, current: str, environment: Environment, ranking: Ranking, *, measured: bool = True
    ) -> Decision:
        """`current` is '' where nothing was chosen yet. If nothing new was `measured` of the stream, what merely looks
        better has not done so once more."""
        relieved, self._relieved_s = self.relieved, -math.inf
        if not ranking.names:
            return Decision(current, False, "nothing keeps what was asked for")
        best, score = ranking.best()
        present = ranking.score(current)
        if relieved:  # what filled the line a moment ago would do so again, whatever a first look says
            best, score = self._not_just_left(now_s, ranking)
        if best == current:
            self._better = ("", 0)
            return _new(Decision, (current, False, "it is the best", ()))
        if not current or (present is None and environment.messages >= ENOUGH):
            if current and ranking.thin and (tuned := _tuned(current, ranking)):
                return self._relieve(now_s, current, tuned, environment, ranking)
            return self._change(now_s, current, best, "{}: best for {}", (ranking.by, environment))
        if environment.messages < ENOUGH:
            return Decision(current, False, "only {} messages were seen", (environment.messages,))
        if not (measured or relieved):
            return Decision(current, False, "nothing was measured since the last decision")
        assert present is not None
        if score > present * (1 - ranking.margin):
            self._better = ("", 0)
            return _new(Decision, (current, False, "{} would hardly be better", (best,)))
        times = self._better[1] + 1 if self._better[0] == best else 1
        self._better = best, times
        if times < self._settled and not relieved:
            return _new(
                Decision, (current, False, "{} looks better; seen {} of {} times", (best, times, self._settled))
            )
        if now_s < self._not_before and not relieved:
            return Decision(current, False, "{} is better, and the last change was just now", (best,))
        if not relieved and score > present * (1 - ranking.margin - toll(current, best, environment)):
            self._better = ("", 0)  # nothing is about to change, so nobody need look more often
            reason = "{} is better, but not by what a change costs on a line of {:g} Mbit/s"
            return Decision(current, False, reason, (best, environment.bandwidth_mbit))
        reasons = ranking.by, score, present, current, environment
        return self._change(now_s, current, best, "{}: {:.3g} against {:.3g} of {}, for {}", reasons)

    def _not_just_left(self, now_s: float, ranking: Ranking) -> Candidate:
        found = ranking.candidates
        return next((one for one in found if now_s >= self._left.get(one.transport, -math.inf) + REST_S), found[0])

    def _relieve(self, now_s: float, current: str, tuned: str, environment: Environment, ranking: Ranking) -> Decision:
        """The queue of the line grows each moment, and the nodes agree on another channel through it, while both send.
        Other parameters need no other channel. What is better still may follow in the next judgement."""
        about = ranking.by, environment
        found = self._change(now_s, current, tuned, "{}: best by the same channel, for {}", about)
        self._relieved_s = now_s
        return found

    def _change(self, now_s: float, old: str, new: str, reason: str, about: tuple[object, ...]) -> Decision:
        # Going back to what was left a moment ago is a sign of an environment between two: wait longer each time.
        left_s = self._left.get(new)
        back = left_s is not None and now_s - left_s < LONGEST_REST_S
        self._rest_s = min(2 * self._rest_s, LONGEST_REST_S) if back else self._first_rest_s
        self._not_before = now_s + self._rest_s
        self._left[old] = now_s
        self._better = ("", 0)
        return _new(Decision, (new, True, reason, about))


def toll(current: str, new: str, environment: Environment) -> float:
    """What a change costs, as a share of what the present one does while a choice lasts: messages wait behind what
    nodes send each other. Nothing where both have the same channel with other parameters."""
    waits_s = environment.receivers * CHANGE_BYTES / (125_000 * environment.bandwidth_mbit)
    waited_s = waits_s * waits_s / (2 * LASTS_S)
    # Nothing takes less than its way: most lines are so fast that nothing else need be computed.
    if waited_s < NEARLY_NOTHING * 1e-6 * environment.delay_us or (_kind(new) and _kind(new) == _kind(current)):
        return 0.0
    return waited_s / (1e-3 * cost(current, environment, _USUAL))


@lru_cache(1024)
def _kind(transport: str) -> str:
    """What all names begin with that differ in parameters alone; '' for those without any."""
    names, colon, _ = transport.partition(":")
    return names + colon if colon else ""


def _tuned(current: str, ranking: Ranking) -> str:
    """The best candidate that differs from it in parameters alone; '' if there is none."""
    if kind := _kind(current):
        for name, _ in ranking.candidates:
            if name.startswith(kind):
                return name
    return ""
