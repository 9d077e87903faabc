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
from typing import NamedTuple

from ringcast.adapt.environment import Environment
from ringcast.adapt.model import Chooser

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
HEARTBEAT_S = 0.005
SEND_S = 5e-6
LEAST_WAY_S = 5e-5
_EXTRA = {"multicast+parity:r=4,c=2,flush=1s": 1.5, "multicast+parity+nak:r=4,c=1,flush=1s": 1.25}
"""Bytes on the wire, in times the messages' own."""


class Wish(NamedTuple):
    """What is asked for: the metric, the share of messages that may be missing, and promises."""

    metric: str
    loss: float = 1.0
    reliable: bool = False
    ordered: bool = True


class Candidate(NamedTuple):
    """`score`: the lower the better."""

    transport: str
    score: float


class Ranking(NamedTuple):
    """Best first. `by` says who ranked them."""

    candidates: list[Candidate]
    by: str
    margin: float = MARGIN

    def score(self, transport: str) -> float | None:
        return next((one.score for one in self.candidates if one.transport == transport), None)


Serves = Callable[[str, Wish], bool]
"""Whether a transport keeps what is promised."""


def ranked(environment: Environment, wish: Wish, model: Chooser | None, serves: Serves) -> Ranking:
    """Of what serves, and can be expected to lose no more than is accepted."""
    numbers = environment.numbers()
    by = "no model is loaded, so by the rule"
    if model is not None:
        beyond = model.beyond(numbers)
        if not beyond:
            names = ((carried(label), score) for label, score in model.ranked(numbers))
            each = [Candidate(name, score * (1 + EFFORT * more_packets(name))) for name, score in names]
            found = sorted(each, key=lambda one: one.score)
            if fit := [one for one in found if _fits(one.transport, environment, wish, serves)]:
                margin = FINE_MARGIN if model.predicts_costs else MARGIN
                return Ranking(fit, f"the {model.family} for {wish.metric}", margin)
            by = "nothing that the model knows will do, so by the rule"
        else:
            by = f"{', '.join(beyond)} beyond what the model learned from, so by the rule"
    return Ranking([one for one in rule(environment, wish) if _fits(one.transport, environment, wish, serves)], by)


def rule(environment: Environment, wish: Wish) -> list[Candidate]:
    """Transports by what they can be expected to cost, best first, from what is known without having tried: how long a
    message waits for its repair, in times the way itself, and what is lost all the same (ReLate2's percent + 1). Costs
    that hardly differ cause no change, so nothing wanders where the environment is between two."""
    way_s = max(1e-6 * environment.delay_us, LEAST_WAY_S)
    period_s = 1 / environment.rate_hz
    share = environment.loss_percent / 100
    # A later message or a heartbeat reveals a loss, then it is asked for and sent.
    again_s = min(environment.burst * period_s, HEARTBEAT_S) + 2 * way_s
    block_s = 3 * period_s + way_s
    many = environment.receivers > 2
    waits = {
        "multicast" if many else "udp": (0.0, False),
        "multicast+nak" if many else "nak": (again_s, True),
        "multicast+parity:r=4,c=2,flush=1s": (block_s, False),
        "multicast+parity+nak:r=4,c=1,flush=1s": (block_s, True),
        "tcp": (2 * again_s + environment.receivers * SEND_S, True),
    }
    found = []
    for transport, (wait_s, in_order) in waits.items():
        # What is delivered in order holds up those that follow it.
        behind_s = wait_s * (1 + (wait_s / period_s / 2 if in_order and wait_s > period_s else 0))
        bytes_ = _EXTRA.get(transport, 1.0) if wish.metric == "bandwidth" else 1.0
        lost_percent = 100 * expected_loss(transport, environment)
        found.append(Candidate(transport, bytes_ * (1 + share * behind_s / way_s) * (1 + lost_percent)))
    return sorted(found, key=lambda one: one.score)


def carried(label: str) -> str:
    """How daemons write what experiments call `label`: those order without being told, and multicast when asked to."""
    names, colon, settings = label.partition(":")
    words = [word for word in names.split("+") if word != "ordering"]
    if not words:
        words = ["multicast"]
    if words[0] not in ("udp", "tcp", "ack", "multicast"):
        words.insert(0, "multicast")
    return "+".join(words) + colon + settings


def called(transport: str, ordered: bool) -> str:
    """How experiments call what daemons write so: the other way round than `carried`. '' for what experiments do not
    run: a stack that sends to each receiver by itself."""
    names, colon, settings = transport.partition(":")
    words = names.split("+")
    if words[0] == "multicast" and len(words) > 1:
        words = words[1:]
    elif words[0] not in ("multicast", "udp", "tcp", "ack"):
        return ""
    if ordered and not {"nak", "ack", "tcp"} & set(words):
        words.insert(0, "ordering")
    return "+".join(words) + colon + settings


def more_packets(transport: str) -> float:
    """How many a receiver gets for each message besides it, where nothing is lost."""
    names, _, settings = transport.partition(":")
    words = names.split("+")
    numbers = dict(part.partition("=")[::2] for part in settings.split(",") if part)
    share = float(numbers.get("c", 3)) / float(numbers.get("r", 8))
    return share if {"parity", "lateral"} & set(words) else 0.0


def expected_loss(transport: str, environment: Environment) -> float:
    """The share of messages that will be missing, roughly: one repair in a burst is worth less than alone."""
    loss = min(environment.loss_percent / 100, 1.0)
    names, _, settings = transport.partition(":")
    words = names.split("+")
    if {"nak", "ack", "tcp"} & set(words):
        return 0.0
    numbers = dict(part.partition("=")[::2] for part in settings.split(",") if part)
    r, c = float(numbers.get("r", 8)), float(numbers.get("c", 3))
    if "lateral" in words:
        # c repairs of it travel, each helps if the other r - 1 packets are here and it arrives itself.
        helps = (1 - loss) ** r
        return float(loss * (1 - helps) ** min(c, max(environment.receivers - 1, 0)))
    if "parity" in words:
        block = r + c
        spare = max(c / environment.burst, 0.0)
        lost_at_once = block * loss / environment.burst
        # Poisson: more bursts hit the block than it can spare.
        return loss * _poisson_above(lost_at_once, spare)
    return loss


def _poisson_above(mean: float, most: float) -> float:
    """The chance of more than `most` besides one that happened."""
    term, total, k = math.exp(-mean), 0.0, 0
    while k + 1 <= most:
        total += term
        k += 1
        term *= mean / k
    return max(1 - total, 0.0)


def _fits(transport: str, environment: Environment, wish: Wish, serves: Serves) -> bool:
    return expected_loss(transport, environment) <= wish.loss and serves(transport, wish)


class Decision(NamedTuple):
    """`change` is whether to carry the stream differently from now on."""

    transport: str
    change: bool
    why: str


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
            return self._change(now_s, current, best.transport, f"{ranking.by}: best for {environment}")
        if environment.messages < ENOUGH:
            return Decision(current, False, f"only {environment.messages} messages were seen")
        assert present is not None
        if best.score > present * (1 - ranking.margin):
            self._better = ("", 0)
            return Decision(current, False, f"{best.transport} would hardly be better")
        times = self._better[1] + 1 if self._better[0] == best.transport else 1
        self._better = best.transport, times
        if times < self._settled:
            return Decision(current, False, f"{best.transport} looks better; seen {times} of {self._settled} times")
        if now_s < self._not_before:
            return Decision(current, False, f"{best.transport} is better, and the last change was just now")
        gain = f"{best.score:.3g} against {present:.3g} of {current}"
        return self._change(now_s, current, best.transport, f"{ranking.by}: {gain}, for {environment}")

    def _change(self, now_s: float, old: str, new: str, why: str) -> Decision:
        # Going back to what was left a moment ago is a sign of an environment between two: wait longer each time.
        back = now_s - self._left.get(new, -math.inf) < LONGEST_REST_S
        self._rest_s = min(2 * self._rest_s, LONGEST_REST_S) if back else self._first_rest_s
        self._not_before = now_s + self._rest_s
        self._left[old] = now_s
        self._better = ("", 0)
        return Decision(new, True, why)
