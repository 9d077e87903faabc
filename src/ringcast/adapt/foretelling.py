"""What a transport can be expected to cost in an environment, from what is known without having tried. Pure.

By this arithmetic transports are ranked where no model is asked (`rule`), those that would lose too much are left out,
and what a model says in times the best becomes a number with a unit. A metric's cost is lower the better: what is
delivered counts as what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from ringcast.adapt.environment import Environment
from ringcast.adapt.features import HEADS_BYTES
from ringcast.adapt.lines import load, sent
from ringcast.adapt.names import Makeup, makeup
from ringcast.adapt.wanting import SLACK, Wish
from ringcast.model.carrier import METRICS

HEARTBEAT_S = 0.005
SEND_S = 5e-6
LEAST_WAY_S = 5e-5
TAIL = 0.01
"""Of the messages, p99 is about."""
UNSEEN_LOSS = 0.001
"""What has not been lost yet may be: where losses are the cost, a line without any counts as if it lost so many."""
UNITS = {"relate2": "ms", "p99": "ms", "deadline": "%", "bandwidth": "B/s", "delivered": "%"}
"""Of what is shown: percent late or lost, percent delivered, bytes per second on the wire."""


class Candidate(NamedTuple):
    """`score`: the lower the better."""

    transport: str
    score: float


_CODED = ("multicast+parity:r=4,c=2,flush=1s", "multicast+parity+nak:r=4,c=1,flush=1s", "tcp")
FEW, MANY = (("udp", "nak", *_CODED), ("multicast", "multicast+nak", *_CODED))
"""What the rule knows: two receivers are each sent to by themselves, unless bytes are what counts."""


def known(environment: Environment, wish: Wish) -> tuple[str, ...]:
    return MANY if environment.receivers > (1 if wish.metric == "bandwidth" else 2) else FEW


def rule(environment: Environment, wish: Wish, among: Iterable[str] | None = None) -> list[Candidate]:
    """A few transports by what they can be expected to cost, best first; of equals what waits least. Costs that hardly
    differ cause no change, so nothing wanders where the environment is between two."""
    names = known(environment, wish) if among is None else among
    return [Candidate(name, score) for score, _, name in priced(environment, wish, map(named, names))]


def priced(environment: Environment, wish: Wish, among: Iterable[Named]) -> list[tuple[float, float, str]]:
    """The same as (cost, how long a repair takes, name)."""
    slack = SLACK.get(METRICS[wish.metric], 0.0)
    waiting, costing = _waiting(environment), _costing(environment, wish)
    found = []
    for name, made, of in among:
        waits_s = waiting(made)
        found.append((costing(made, of, waits_s) + slack, waits_s, name))
    found.sort()
    return found


def cost(transport: str, environment: Environment, wish: Wish) -> float:
    """The metric, in its unit; of `delivered`, the percent that are missing."""
    _, made, of = named(transport)
    return _costing(environment, wish)(made, of, wait_s(made, environment))


# What is the same for all candidates is computed once: a rule that takes microseconds asks for five of them.
def _costing(environment: Environment, wish: Wish) -> Callable[[Makeup, Losing, float], float]:
    """From what a name says, what it loses and how long its repairs take to what it costs."""
    share, metric = environment.loss_percent / 100, wish.metric
    if share > 1.0:
        share = 1.0
    if share < UNSEEN_LOSS and metric in ("deadline", "delivered"):
        share = UNSEEN_LOSS
    rate_hz, burst, receivers = environment.rate_hz, environment.burst, environment.receivers
    if metric == "bandwidth":
        return lambda made, losing, waits_s: rate_hz * _bytes(made, environment, share)
    if metric == "delivered":
        return lambda made, losing, waits_s: 100 * losing(share, burst, receivers)
    way_s, period_s, deadline_s = _way_s(environment), 1 / rate_hz, wish.deadline_s

    def late(made: Makeup, losing: Losing, waits_s: float) -> float:
        lost = losing(share, burst, receivers)
        # What is delivered in order holds up those that follow it.
        held = 1 + (waits_s / period_s / 2 if made.again and waits_s > period_s else 0)
        delayed = share - lost if share > lost else 0.0
        delayed = delayed * held if delayed * held < 1.0 else 1.0
        if metric == "deadline":
            late = 1 - lost if way_s > deadline_s else delayed if way_s + waits_s > deadline_s else 0.0
            return 100 * (lost + late if lost + late < 1.0 else 1.0)
        if metric == "p99":
            return 1e3 * (way_s + waits_s * (delayed / TAIL if delayed < TAIL else 1.0))
        return 1e3 * (way_s + share * waits_s * held) * (1 + 100 * lost)

    return late


def shown(best: str, times: list[float], environment: Environment, wish: Wish) -> list[float]:
    """The metric of several in `UNITS`, from what the best costs and how many times that each costs."""
    slack = SLACK.get(METRICS[wish.metric], 0.0)
    lowest = cost(best, environment, wish) + slack
    found = [max(lowest * one - slack, 0.0) for one in times]
    return [max(100 - one, 0.0) for one in found] if wish.metric == "delivered" else found


def wait_s(made: Makeup, environment: Environment) -> float:
    """How long a message that was lost waits for its repair, beyond its way."""
    return _waiting(environment)(made)


def _waiting(environment: Environment) -> Callable[[Makeup], float]:
    way_s, period_s = _way_s(environment), 1 / environment.rate_hz
    # A later message or a heartbeat reveals a loss, then it is asked for and sent.
    seen_s = environment.burst * period_s
    again_s = (seen_s if seen_s < HEARTBEAT_S else HEARTBEAT_S) + 2 * way_s
    by_tcp_s = 2 * again_s + environment.receivers * SEND_S

    def waits(made: Makeup) -> float:
        if made.code:
            filled_s = (made.r - 1) * period_s
            return (filled_s if filled_s < made.flush_s else made.flush_s) + way_s
        return by_tcp_s if made.tcp else again_s if made.again else 0.0

    return waits


def bytes_sent(transport: str, environment: Environment) -> float:
    """By the publisher's node, for each message."""
    loss = min(environment.loss_percent / 100, 1.0)
    of = load(makeup(transport), environment.rate_hz)
    return sent(of, environment.payload_bytes, environment.receivers, loss)


def more_packets(transport: str) -> float:
    """How many a receiver gets for each message besides it, where nothing is lost."""
    made = makeup(transport)
    return made.c / made.r if made.code else 0.0


def expected_loss(transport: str, environment: Environment) -> float:
    """The share of messages that will be missing, roughly: one repair in a burst is worth less than alone."""
    loss = min(environment.loss_percent / 100, 1.0)
    return lost_share(makeup(transport), loss, environment.burst, environment.receivers)


def lost_share(made: Makeup, loss: float, burst: float, receivers: int) -> float:
    """The same, of what was read already. Never more than `loss`."""
    return losing(made)(loss, burst, receivers)


Losing = Callable[[float, float, int], float]
"""What share is missing in the end, by loss, length of bursts and receivers."""


# A decision takes microseconds: what does not depend on the environment is computed once.
@lru_cache(1024)
def losing(made: Makeup) -> Losing:
    r, c = made.r, made.c
    if made.again:
        return lambda loss, burst, receivers: 0.0
    if made.code == "lateral":

        def lateral(loss: float, burst: float, receivers: int) -> float:
            # c repairs of it travel, each helps if the other r - 1 packets are here and it arrives itself.
            others = receivers - 1 if receivers > 1 else 0
            return float(loss * (1 - (1 - loss) ** r) ** (c if c < others else others))

        return lateral
    if made.code:

        def parity(loss: float, burst: float, receivers: int) -> float:
            # Poisson: the chance of more bursts in the block than it can spare, besides the one that happened.
            mean = (r + c) * loss / burst
            term, left = math.exp(-mean), 1.0
            for k in range(1, int(c / burst) + 1):
                left -= term
                term *= mean / k
            return loss * left if left > 0 else 0.0

        return parity
    return lambda loss, burst, receivers: loss


class Named(NamedTuple):
    """A name, and what it says."""

    transport: str
    made: Makeup
    losing: Losing


@lru_cache(1024)
def named(transport: str) -> Named:
    made = makeup(transport)
    return Named(transport, made, losing(made))


def _way_s(environment: Environment) -> float:
    way_s = 1e-6 * environment.delay_us
    return way_s if way_s > LEAST_WAY_S else LEAST_WAY_S


def _bytes(made: Makeup, environment: Environment, share: float) -> float:
    """On the wire for each message, from all hosts."""
    packet, receivers = environment.payload_bytes + HEADS_BYTES, environment.receivers
    found = packet * (receivers if made.each else 1)
    if made.code == "lateral":
        found += packet * receivers * made.c / made.r
    elif made.code:
        block = min(made.r, math.floor(made.flush_s * environment.rate_hz) + 1)
        found += packet * made.c / block * (receivers if made.each else 1)
    if made.again:
        # A request, and the message once more.
        found += share * receivers * (packet + HEADS_BYTES) + (HEADS_BYTES * receivers if made.tcp else 0)
    return found
