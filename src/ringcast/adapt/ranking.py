"""What may carry a tag in an environment, and how good each would be. Pure.

Promises come first: what is not reliable, not ordered or loses more than was accepted is no candidate. Nor is what
would take more than a share of the line, while something else fits (`lines`). Then a model ranks the candidates for the
environment; outside what it learned from, and without one, a rule does. Whether the best of them is worth a change is
said in `deciding`.
"""

from __future__ import annotations

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
EFFORT = 0.01
"""What a packet more for each message counts, in times the cost: those that a model takes for equal are not, because in
the simulator receivers take no time for repairs."""


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
