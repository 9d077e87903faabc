"""Fidelity follows resources: of a range of rates or sizes, the best that fits. Pure.

A subscriber may give a range of rates (`rate_hz`). It gets the highest in it with which nobody misses a deadline that
would not miss it otherwise: every message, or every n-th. Those with the shortest deadlines choose first.
"""

from __future__ import annotations

import math

import msgspec

from ringcast.admission.model import Stream, Subscriber, System
from ringcast.admission.priorities import rank
from ringcast.admission.verdict import Judged, judge


class Choice(msgspec.Struct, frozen=True):
    """What a subscriber with a range gets: every n-th message, that is `hz` a second, of `most_hz` that it would have
    liked. With `fits` False not even the least of its range does."""

    tag: str
    name: str
    every: int
    hz: float
    least_hz: float
    most_hz: float
    fits: bool
    best: bool = True
    """It is the most of the range, as far as the publisher sends so much."""

    def sentence(self) -> str:
        if not self.fits:
            return f"{self.tag} to {self.name}: not even {self.least_hz:g} messages a second fit"
        return f"{self.tag} to {self.name}: {self.hz:.4g} messages a second, of {self.least_hz:g} to {self.most_hz:g}"


def settle(system: System) -> tuple[System, tuple[Choice, ...]]:
    """The system with every range decided, and what was decided. Raises AdmissionError."""
    asking = [(stream, one) for stream in system.streams for one in stream.subscribers if one.rate_hz is not None]
    asking.sort(key=lambda pair: (rank(pair[0].deadline_s, pair[0].tag, pair[0].priority), pair[1].name))
    # Until they choose, all have the least that they ask for: nobody takes what another needs to be there at all.
    for stream, one in asking:
        system = _with(system, stream.tag, one.name, _factors(stream, one)[-1])
    choices = []
    for stream, one in asking:
        system, choice = _choose(system, stream, one)
        choices.append(choice)
    return system, tuple(choices)


def _choose(system: System, stream: Stream, one: Subscriber) -> tuple[System, Choice]:
    factors = _factors(stream, one)
    own = ("subscriber", stream.tag, one.name)
    missing = {_key(judged) for judged in judge(system).refused} - {own}
    low, high = 0, len(factors) - 1  # the last is the least, which the system has already
    while low < high:  # fewer messages never make anybody later, so the first that fits can be searched for by halving
        middle = (low + high) // 2
        tried = _with(system, stream.tag, one.name, factors[middle])
        fits = all(_key(judged) in missing for judged in judge(tried).refused)
        low, high = (low, middle) if fits else (middle + 1, high)
    every = factors[high]
    assert one.rate_hz is not None
    least, most = one.rate_hz
    chosen = _with(system, stream.tag, one.name, every)
    fits = own not in {_key(judged) for judged in judge(chosen).refused}
    choice = Choice(stream.tag, one.name, every, 1 / (stream.period_s * every), least, most, fits, high == 0)
    return chosen, choice


def _factors(stream: Stream, one: Subscriber) -> list[int]:
    """Every n-th message for every n of the range, the most first; one at least."""
    assert one.rate_hz is not None
    least, most = one.rate_hz
    first = max(1, math.ceil(1 / (stream.period_s * most) - 1e-9))
    last = max(first, math.floor(1 / (stream.period_s * least) + 1e-9))
    return list(range(first, last + 1))


def _with(system: System, tag: str, name: str, every: int) -> System:
    def changed(stream: Stream) -> Stream:
        ones = tuple(
            msgspec.structs.replace(one, every=every) if one.name == name else one for one in stream.subscribers
        )
        return msgspec.structs.replace(stream, subscribers=ones) if stream.tag == tag else stream

    return msgspec.structs.replace(system, streams=tuple(map(changed, system.streams)))


def _key(one: Judged) -> tuple[str, str, str]:
    return one.kind, one.tag, one.name
