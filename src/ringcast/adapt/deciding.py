"""Which transport a tag is to be carried by now, and whether that is worth a change. Pure.

Promises come first: what is not reliable, not ordered or loses more than was accepted is no candidate. Nor is what
would take more than a share of the line, while something else fits (`lines`). Then a model
ranks the candidates for the environment; outside what it learned from, and without one, a rule does. A change costs:
the better one must be better by a margin, and on a thin line by as much as messages wait while nodes agree on another
channel (`toll`), look after look (`SETTLED`), and the last change must be `REST_S` ago, or twice as long each time that
it would go back to where it came from. So in a steady environment nothing wanders. When
what carries the stream now is no candidate any more, the change is made at once; where the line is the reason, to other
parameters of the same channel first, if these fit, and from these to whatever is better in the next judgement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from operator import itemgetter, mul
from typing import NamedTuple

from ringcast.adapt.environment import Environment
from ringcast.adapt.features import HEADS_BYTES, REPAIR_HEADS_BYTES
from ringcast.adapt.foretelling import (
    Candidate,
    Losing,
    bytes_sent,
    cost,
    expected_loss,
    known,
    losing,
    more_packets,
    named,
    priced,
)
from ringcast.adapt.lines import KEPT_SHARE, SHARE, load
from ringcast.adapt.model import Chooser
from ringcast.adapt.names import Makeup, carried, makeup
from ringcast.adapt.wanting import Wish

MARGIN, FINE_MARGIN = 0.1, 0.03
"""By how much something must be better: a rule or a vote is coarse; a model that predicts costs is finer."""
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
EFFORT = 0.01
"""What a packet more for each message counts, in times the cost: those that a model takes for equal are not, because in
the simulator receivers take no time for repairs."""
ENOUGH = 30
"""Messages; fewer say nothing of a loss."""


class Ranking(NamedTuple):
    """What may carry it, in no order: only one of many is wanted, and sorting them takes a third of a decision. `by`
    says who ranked them; `costs`, whether scores are what the metric would be, in any unit. If not, they are votes.
    The lower, the better."""

    names: Sequence[str]
    scores: Sequence[float]
    by: str
    margin: float = MARGIN
    costs: bool = True
    thin: bool = False
    """Whether something is left out because it would fill the line."""

    @classmethod
    def of(cls, candidates: Iterable[Candidate], by: str, *, costs: bool = True, thin: bool = False) -> Ranking:
        found = list(candidates)
        return cls([one.transport for one in found], [one.score for one in found], by, costs=costs, thin=thin)

    @property
    def candidates(self) -> list[Candidate]:
        """Best first."""
        return sorted(map(Candidate, self.names, self.scores), key=itemgetter(1))

    def best(self) -> tuple[str, float]:
        """There must be one."""
        least = min(self.scores)
        return self.names[self.scores.index(least)], least

    def score(self, transport: str) -> float | None:
        return self.scores[self.names.index(transport)] if transport in self.names else None


Serves = Callable[[str, Wish], bool]
"""Whether a transport keeps what is promised."""


_Label = tuple[int, str, float, Losing | None, Makeup]
_Group = tuple[float, float, float, bool, bool, list[_Label]]
"""Labels that put the same on the line at any rate: repairs for how many packets, and how long a block waits to be
full; to each receiver by itself; again what is lost."""


class _Plan(NamedTuple):
    """What of a ranking does not depend on the environment: the labels of a model that keep a promise, by their number,
    with the name that daemons write, what its packets count, what it loses if it does not ask again, and what else it
    says. The rule has such a plan too, of what it knows."""

    labels: list[_Label]
    groups: list[_Group]
    names: list[str]
    at: Callable[[Sequence[float]], tuple[float, ...]]
    """What a model says of them, of what it says of all."""
    efforts: list[float]
    by: str
    margin: float
    costs: bool
    repairs: float
    """The most for a message, at any rate, of labels that send once for all."""
    repairs_each: float
    """And of those that send to each receiver by itself; below 0 where there is none."""


_LONGER = REPAIR_HEADS_BYTES - HEADS_BYTES


# A decision takes microseconds, and reading names would be most of them.
@lru_cache(64)
def _plan(model: Chooser, metric: str, reliable: bool, ordered: bool, serves: Serves) -> _Plan:
    wish = Wish(metric, reliable=reliable, ordered=ordered)
    names = [(at, carried(label)) for at, label in enumerate(model.labels)]
    kept = [(at, name) for at, name in names if serves(name, wish)]
    margin = FINE_MARGIN if model.predicts_costs else MARGIN
    return _planned(kept, f"the {model.family} for {metric}", margin, model.predicts_costs)


@lru_cache(64)
def _ruled(names: tuple[str, ...], reliable: bool, ordered: bool, serves: Serves) -> _Plan:
    """Of what the rule knows."""
    wish = Wish("", reliable=reliable, ordered=ordered)
    return _planned([(at, name) for at, name in enumerate(names) if serves(name, wish)], "", MARGIN, costs=True)


def _planned(kept: list[tuple[int, str]], by: str, margin: float, costs: bool) -> _Plan:
    labels: list[_Label] = [
        (at, name, 1 + EFFORT * more_packets(name), None if made.again else losing(made), made)
        for at, name in kept for made in [makeup(name)]
    ]  # fmt: skip
    slowest = [load(made, 0.0) for *_, made in labels]
    once = max((one.repairs for one in slowest if not one.each), default=0.0)
    alone = max((one.repairs for one in slowest if one.each), default=-1.0)
    ats = [at for at, _ in kept]
    taken: Callable[[Sequence[float]], tuple[float, ...]] = itemgetter(*ats) if len(ats) > 1 else partial(_those, ats)
    efforts = [effort for _, _, effort, *_ in labels]
    return _Plan(labels, _groups(labels), [name for _, name in kept], taken, efforts, by, margin, costs, once, alone)


def _those(ats: list[int], of: Sequence[float]) -> tuple[float, ...]:
    return tuple(of[at] for at in ats)


def _groups(labels: Iterable[_Label]) -> list[_Group]:
    alike: dict[tuple[float, float, float, bool, bool], list[_Label]] = {}
    for label in labels:
        made = label[4]
        repairs = made.c if made.code == "parity" else 0.0  # what is lateral, receivers send by their own lines
        block = (made.r, made.flush_s) if repairs else (1.0, 0.0)
        alike.setdefault((repairs, *block, made.each, made.again), []).append(label)
    return [(*of, members) for of, members in alike.items()]


_new = tuple.__new__
_USUAL = Wish("relate2")


def ranked(
    environment: Environment, wish: Wish, model: Chooser | None, serves: Serves, current: str = ""
) -> Ranking:  # fmt: skip
    """Of what serves, can be expected to lose no more than is accepted, and fits the line; `current` may take a little
    more of it than others. What serves is asked once for each model and promise."""
    by = "no model is loaded, so by the rule"
    if model is not None:
        numbers = environment.numbers()
        beyond = model.beyond(numbers)
        if not beyond:
            plan = _plan(model, wish.metric, wish.reliable, wish.ordered, serves)
            every, _, names, at, efforts, ranked_by, margin, costs, _, _ = plan
            rated = model.rated(numbers)
            loss, most = environment.loss_percent / 100, wish.loss
            labels = _fitting(plan, environment, current)
            thin = labels is not every
            if loss > most:
                burst, receivers, names, scores = environment.burst, environment.receivers, [], []
                for number, name, effort, of, _ in labels:
                    if of is None or of(loss, burst, receivers) <= most:
                        names.append(name)
                        scores.append(rated[number] * effort)
            elif not thin:
                scores = list(map(mul, at(rated), efforts))
            else:
                names, scores = [one[1] for one in labels], [rated[one[0]] * one[2] for one in labels]
            if thin:
                ranked_by = _told(ranked_by, len(every) - len(labels))
                for number, name, effort, *_ in () if names else _least(every, environment, most):
                    names, scores = [name], [rated[number] * effort]
            if names:
                return _new(Ranking, (names, scores, ranked_by, margin, costs, thin))
            by = "nothing that the model knows will do, so by the rule"
        else:
            by = f"{', '.join(beyond)} beyond what the model learned from, so by the rule"
    return _by_rule(environment, wish, serves, current, by)


def _by_rule(environment: Environment, wish: Wish, serves: Serves, current: str, by: str) -> Ranking:
    plan = _ruled(known(environment, wish), wish.reliable, wish.ordered, serves)
    every, labels = plan.labels, _fitting(plan, environment, current)
    loss, most = min(environment.loss_percent / 100, 1.0), wish.loss
    if loss > most:
        burst, receivers = environment.burst, environment.receivers
        every, labels = (
            [one for one in of if one[3] is None or one[3](loss, burst, receivers) <= most] for of in (every, labels)
        )
    out = len(every) - len(labels)
    if not labels:
        labels = _least(every, environment, most)
        out = len(every) - len(labels)
    found = priced(environment, wish, [named(name) for _, name, *_ in labels])
    names, scores = [name for _, _, name in found], [score for score, _, _ in found]
    return _new(Ranking, (names, scores, _told(by, out), MARGIN, True, out > 0))


def _fitting(plan: _Plan, environment: Environment, current: str) -> list[_Label]:
    """Those that leave something of the line, all of `plan.labels` itself where each does. What carries the stream now
    may take more than what is to replace it. All sizes are of one message: `missing` is what is asked for again, `line`
    what the line carries until the next one. As `lines.sent` says it, which is not called here: that would take too
    long."""
    rate_hz, receivers = environment.rate_hz, environment.receivers
    packet, line = environment.payload_bytes + HEADS_BYTES, 125_000 * environment.bandwidth_mbit / rate_hz
    repair, missing = packet + _LONGER, packet * receivers * (environment.loss_percent / 100)
    left = SHARE * line
    # Most lines have room for whatever is sent, and then nothing else is asked of them.
    if left - missing >= packet + plan.repairs * repair and left - missing >= receivers * (
        packet + plan.repairs_each * repair
    ):
        return plan.labels
    found: list[_Label] = []
    for repairs, r, flush_s, each, again, members in plan.groups:
        size = packet
        if repairs:  # a block goes out when it is full, or has waited: the slower, the fewer messages there are in it
            messages = int(flush_s * rate_hz) + 1
            size += repairs / (messages if messages < r else r) * repair
        if each:
            size *= receivers
        if again:
            size += missing
        if size <= left:
            found += members
        elif size <= KEPT_SHARE * line:
            found += [label for label in members if label[1] == current]
    return plan.labels if len(found) == len(plan.labels) else found


def _least(labels: list[_Label], environment: Environment, most: float) -> list[_Label]:
    """Where nothing fits that loses no more than `most`: of what loses no more, the one that sends the least."""
    found = [one for one in labels if expected_loss(one[1], environment) <= most]
    return sorted(found, key=lambda one: bytes_sent(one[1], environment))[:1]


@lru_cache(64)
def _told(by: str, out: int) -> str:
    return f"{by}, without {out} that would fill the line" if out else by


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
        """Whether something else looked better last time, or may do so."""
        return self.relieved or self._better[1] > 0

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
