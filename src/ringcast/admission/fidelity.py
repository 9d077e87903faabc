"""Fidelity follows resources: of a range of rates or sizes, the best that fits. Pure.

A subscriber may give a range of rates (`rate_hz`), of sizes (`sizes`), or both. It gets the best in it with which
nobody misses a deadline that would not miss it otherwise: every message, or every n-th; as large as it asks for at
most, or smaller. Both fall together. Those with the shortest deadlines choose first, of equals those that were there
first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from ringcast.admission.model import Stream, Subscriber, System
from ringcast.admission.priorities import rank
from ringcast.admission.verdict import Judged, judge
from ringcast.scaling.fidelity import between

_STEP = 1.02
"""Sizes that are tried differ by this factor."""


class Offer(NamedTuple):
    """Every n-th message, of so many bytes; None is as large as they are published."""

    every: int
    bytes: float | None


class Choice(msgspec.Struct, frozen=True):
    """What a subscriber with a range gets: every n-th message, that is `hz` a second, of `most_hz` that it would have
    liked, and `bytes` of each, of `most_bytes`; 0 where there is no such range. With `fits` False not even the least of
    its range does."""

    tag: str
    name: str
    every: int
    hz: float
    least_hz: float
    most_hz: float
    fits: bool
    best: bool = True
    """It is the most of the range, as far as the publisher sends so much."""
    bytes: float = 0.0
    least_bytes: float = 0.0
    most_bytes: float = 0.0

    def sentence(self) -> str:
        least, found = [], []
        if self.most_hz:
            least.append(f"{self.least_hz:g} messages a second")
            found.append(f"{self.hz:.4g} messages a second, of {self.least_hz:g} to {self.most_hz:g}")
        if self.most_bytes:
            least.append(f"{self.least_bytes:.0f} bytes a message")
            found.append(f"{self.bytes:.0f} bytes a message, of {self.least_bytes:.0f} to {self.most_bytes:.0f}")
        if not self.fits:
            return f"{self.tag} to {self.name}: not even {' with '.join(least)} fit"
        return f"{self.tag} to {self.name}: {'; '.join(found)}"


def settle(system: System) -> tuple[System, tuple[Choice, ...]]:
    """The system with every range decided, and what was decided. Raises AdmissionError."""
    asking = [(stream, one) for stream in system.streams for one in stream.subscribers if one.has_range]
    asking.sort(key=lambda pair: (rank(pair[0].deadline_s, pair[0].tag, pair[0].priority), _turn(pair[1].name)))
    # Until they choose, all have the least that they ask for: nobody takes what another needs to be there at all.
    for stream, one in asking:
        system = _with(system, stream.tag, one.name, _offers(stream, one)[-1])
    choices = []
    for stream, one in asking:
        system, choice = _choose(system, stream, one)
        choices.append(choice)
    return system, tuple(choices)


def _turn(name: str) -> tuple[str, float]:
    """Whose turn it is, of equals: daemons number subscribers as they come, and 0 is one that is not there yet."""
    node, _, number = name.rpartition("#")
    return (node, int(number) or math.inf) if number.isdecimal() else (name, 0)


def _choose(system: System, stream: Stream, one: Subscriber) -> tuple[System, Choice]:
    offers = _offers(stream, one)
    own = ("subscriber", stream.tag, one.name)
    missing = {_key(judged) for judged in judge(system).refused} - {own}
    low, high = 0, len(offers) - 1  # the last is the least, which the system has already
    while low < high:  # fewer messages never make anybody later, so the first that fits can be searched for by halving
        middle = (low + high) // 2
        tried = _with(system, stream.tag, one.name, offers[middle])
        fits = all(_key(judged) in missing for judged in judge(tried).refused)
        low, high = (low, middle) if fits else (middle + 1, high)
    every, size = offers[high]
    chosen = _with(system, stream.tag, one.name, offers[high])
    fits = own not in {_key(judged) for judged in judge(chosen).refused}
    hz = 1 / (stream.period_s * every)
    return chosen, Choice(
        stream.tag, one.name, every, hz, *(one.rate_hz or (0.0, 0.0)), fits, high == 0,
        size if one.sizes is not None and size is not None else 0.0, *(one.sizes or (0.0, 0.0)),
    )  # fmt: skip


def _offers(stream: Stream, one: Subscriber) -> list[Offer]:
    """All that is within the range, the best first; one at least."""
    factors = _factors(stream, one)
    if one.sizes is None:
        return [Offer(every, one.scaled_bytes) for every in factors]
    least, most = one.sizes
    number = max(1, len(factors) - 1, math.ceil(math.log(most / least) / math.log(_STEP)))
    offers = []
    for index in range(number + 1):
        share = index / number
        every = math.ceil(factors[0] * (factors[-1] / factors[0]) ** share - 1e-9)
        offers.append(Offer(min(factors[-1], every), between(most, least, share)))
    return list(dict.fromkeys(offers))


def _factors(stream: Stream, one: Subscriber) -> list[int]:
    """Every n-th message for every n of the range, the most first; one at least."""
    if one.rate_hz is None:
        return [one.every]
    least, most = one.rate_hz
    first = max(1, math.ceil(1 / (stream.period_s * most) - 1e-9))
    last = max(first, math.floor(1 / (stream.period_s * least) + 1e-9))
    return list(range(first, last + 1))


def _with(system: System, tag: str, name: str, offer: Offer) -> System:
    def changed(stream: Stream) -> Stream:
        ones = tuple(
            msgspec.structs.replace(one, every=offer.every, scaled_bytes=offer.bytes) if one.name == name else one
            for one in stream.subscribers
        )
        return msgspec.structs.replace(stream, subscribers=ones) if stream.tag == tag else stream

    return msgspec.structs.replace(system, streams=tuple(map(changed, system.streams)))


def _key(one: Judged) -> tuple[str, str, str]:
    return one.kind, one.tag, one.name
