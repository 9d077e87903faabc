"""Which transport a tag is to be carried by now, and whether that is worth a change. Pure.

Promises come first: what is not reliable, not ordered or loses more than was accepted is no candidate. Then a model
ranks the candidates for the environment; outside what it learned from, and without one, a rule does. A change costs:
the better one must be better by a margin, look after look (`SETTLED`), and the last change must be `REST_S` ago, or
twice as long each time that it would go back to where it came from. So in a steady environment nothing wanders. When
what carries the stream now is no candidate any more, the change is made at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from ringcast.adapt.environment import Environment
from ringcast.adapt.foretelling import Candidate, expected_loss, known, lost_share, more_packets, rule
from ringcast.adapt.model import Chooser
from ringcast.adapt.names import Makeup, carried, makeup
from ringcast.adapt.wanting import Wish

MARGIN, FINE_MARGIN = 0.1, 0.03
"""By how much something must be better: a rule or a vote is coarse; a model that predicts costs is finer."""
SETTLED = 2
REST_S = 5.0
LONGEST_REST_S = 600.0
EFFORT = 0.01
"""What a packet more for each message counts, in times the cost: those that a model takes for equal are not, because in
the simulator receivers take no time for repairs."""
ENOUGH = 30
"""Messages; fewer say nothing of a loss."""


class Ranking(NamedTuple):
    """Best first. `by` says who ranked them; `costs`, whether scores are what the metric would be, in any unit. If not,
    they are votes."""

    candidates: list[Candidate]
    by: str
    margin: float = MARGIN
    costs: bool = True

    def score(self, transport: str) -> float | None:
        for name, score in self.candidates:
            if name == transport:
                return score
        return None


Serves = Callable[[str, Wish], bool]
"""Whether a transport keeps what is promised."""


class _Plan(NamedTuple):
    """What of a ranking does not depend on the environment: the labels of a model that keep a promise, by their number,
    with the name that daemons write, what its packets count, whether it asks again, and what else it says."""

    labels: list[tuple[int, str, float, bool, Makeup]]
    by: str
    margin: float
    costs: bool


# A decision takes microseconds, and reading names would be most of them.
@lru_cache(64)
def _plan(model: Chooser, metric: str, reliable: bool, ordered: bool, serves: Serves) -> _Plan:
    wish = Wish(metric, reliable=reliable, ordered=ordered)
    names = [(at, carried(label)) for at, label in enumerate(model.labels)]
    labels = [
        (at, name, 1 + EFFORT * more_packets(name), made.again, made)
        for at, name in names if serves(name, wish) for made in [makeup(name)]
    ]  # fmt: skip
    margin = FINE_MARGIN if model.predicts_costs else MARGIN
    return _Plan(labels, f"the {model.family} for {metric}", margin, model.predicts_costs)


_score = itemgetter(1)
_new = tuple.__new__


def ranked(environment: Environment, wish: Wish, model: Chooser | None, serves: Serves) -> Ranking:
    """Of what serves, and can be expected to lose no more than is accepted. What serves is asked once for each model
    and promise."""
    by = "no model is loaded, so by the rule"
    if model is not None:
        numbers = environment.numbers()
        beyond = model.beyond(numbers)
        if not beyond:
            labels, ranked_by, margin, costs = _plan(model, wish.metric, wish.reliable, wish.ordered, serves)
            rated = model.rated(numbers)
            loss, most = min(environment.loss_percent / 100, 1.0), wish.loss
            if loss > most:
                burst, receivers = environment.burst, environment.receivers
                fit = [
                    _new(Candidate, (name, rated[at] * effort)) for at, name, effort, again, made in labels
                    if again or lost_share(made, loss, burst, receivers) <= most
                ]  # fmt: skip
            else:
                fit = [_new(Candidate, (name, rated[at] * effort)) for at, name, effort, _, _ in labels]
            if fit:
                fit.sort(key=_score)
                return Ranking(fit, ranked_by, margin, costs)
            by = "nothing that the model knows will do, so by the rule"
        else:
            by = f"{', '.join(beyond)} beyond what the model learned from, so by the rule"
    names = _serving(known(environment, wish), wish.reliable, wish.ordered, serves)
    if min(environment.loss_percent / 100, 1.0) > wish.loss:
        names = [name for name in names if expected_loss(name, environment) <= wish.loss]
    return Ranking(rule(environment, wish, names), by)


@lru_cache(64)
def _serving(names: tuple[str, ...], reliable: bool, ordered: bool, serves: Serves) -> list[str]:
    """Of what the rule knows."""
    wish = Wish("", reliable=reliable, ordered=ordered)
    return [name for name in names if serves(name, wish)]


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

    def decide(self, now_s: float, current: str, environment: Environment, ranking: Ranking) -> Decision:
        """`current` is '' where nothing was chosen yet."""
        if not ranking.candidates:
            return Decision(current, False, "nothing keeps what was asked for")
        best, present = ranking.candidates[0], ranking.score(current)
        if best.transport == current:
            self._better = ("", 0)
            return Decision(current, False, "it is the best")
        if not current or (present is None and environment.messages >= ENOUGH):
            return self._change(now_s, current, best.transport, "{}: best for {}", (ranking.by, environment))
        if environment.messages < ENOUGH:
            return Decision(current, False, "only {} messages were seen", (environment.messages,))
        assert present is not None
        if best.score > present * (1 - ranking.margin):
            self._better = ("", 0)
            return Decision(current, False, "{} would hardly be better", (best.transport,))
        times = self._better[1] + 1 if self._better[0] == best.transport else 1
        self._better = best.transport, times
        if times < self._settled:
            return Decision(
                current, False, "{} looks better; seen {} of {} times", (best.transport, times, self._settled)
            )
        if now_s < self._not_before:
            return Decision(current, False, "{} is better, and the last change was just now", (best.transport,))
        about = ranking.by, best.score, present, current, environment
        return self._change(now_s, current, best.transport, "{}: {:.3g} against {:.3g} of {}, for {}", about)

    def _change(self, now_s: float, old: str, new: str, reason: str, about: tuple[object, ...]) -> Decision:
        # Going back to what was left a moment ago is a sign of an environment between two: wait longer each time.
        back = now_s - self._left.get(new, -math.inf) < LONGEST_REST_S
        self._rest_s = min(2 * self._rest_s, LONGEST_REST_S) if back else self._first_rest_s
        self._not_before = now_s + self._rest_s
        self._left[old] = now_s
        self._better = ("", 0)
        return Decision(new, True, reason, about)
