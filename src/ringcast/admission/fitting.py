"""What would fit, when something does not: a longer deadline, a longer period, a smaller message, every n-th. Pure.

Each is found by asking `judge` about the changed system, so what is proposed is what would be admitted. One change at a
time: whoever declared the stream chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from ringcast.admission.model import Stream, System
from ringcast.admission.verdict import Judged, Verdict, judge

_MOST_PERIODS = 1024.0
_ROUNDS = 12
"""Of halving: the answer is within a thousandth."""


class Fit(msgspec.Struct, frozen=True):
    """One change after which everything of that stream, and of all that were admitted before, is admitted."""

    tag: str
    name: str
    change: str
    value: float
    before: float

    def sentence(self) -> str:
        words = {
            "deadline_s": f"a deadline of {self.value:.4g} s for {self.name} instead of {self.before:.4g} s",
            "max_age_s": f"an age of {self.value:.4g} s for {self.name} instead of {self.before:.4g} s",
            "period_s": f"a period of {self.value:.4g} s instead of {self.before:.4g} s",
            "bytes": f"at most {self.value:.0f} bytes instead of {self.before:.0f}",
        }
        return f"{self.tag}: {words[self.change]}"


def fits(system: System, verdict: Verdict, deadlines_only: bool = False) -> list[Fit]:
    """For every stream that is refused, what would let it in. Empty for what no single change lets in. Periods and
    sizes are searched for, which takes some dozens of times as long as the verdict did."""
    found: list[Fit] = []
    for tag in dict.fromkeys(one.tag for one in verdict.refused if one.kind != "task"):
        found += _deadlines(system, [one for one in verdict.refused if one.tag == tag])
        found += [] if deadlines_only else _stream(system, tag)
    return found


def _deadlines(system: System, refused: list[Judged]) -> list[Fit]:
    """A longer deadline may mean a lower class, and so a longer delay: asked again until it holds."""
    made = []
    for one in refused:
        if not math.isfinite(one.bound_s) or one.limit_s is None:
            continue
        field = "max_age_s" if one.kind == "pull" else "deadline_s"
        limit = _upwards(one.bound_s)
        for _ in range(_ROUNDS):
            changed = _with_limit(system, one, field, limit)
            again = next(x for x in judge(changed).judged if (x.kind, x.tag, x.name) == (one.kind, one.tag, one.name))
            if again.met:
                made.append(Fit(one.tag, one.name, field, limit, one.limit_s))
                break
            if not math.isfinite(again.bound_s):
                break
            limit = _upwards(again.bound_s)
    return made


def _stream(system: System, tag: str) -> list[Fit]:
    stream = next(one for one in system.streams if one.tag == tag)
    # A stream need not repair what others miss without it.
    others = {_key(one) for one in judge(_without(system, tag)).refused}

    def fitting(field: str) -> Callable[[float], bool]:
        return lambda value: all(
            _key(one) in others for one in judge(_with(system, tag, field, value)).refused
        )  # fmt: skip

    made = []
    period = _least(fitting("period_s"), stream.period_s, stream.period_s * _MOST_PERIODS)
    if period is not None:
        made.append(Fit(tag, "", "period_s", period, stream.period_s))
    size = _most(fitting("bytes"), 1.0, stream.bytes)
    if size is not None:
        made.append(Fit(tag, "", "bytes", math.floor(size), stream.bytes))
    return made


def _least(good: Callable[[float], bool], low: float, high: float) -> float | None:
    """By halving the ratio: `low` is not good."""
    if not good(high):
        return None
    for _ in range(_ROUNDS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return _upwards(high) if good(_upwards(high)) else high


def _most(good: Callable[[float], bool], low: float, high: float) -> float | None:
    if not good(low):
        return None
    for _ in range(_ROUNDS):
        middle = math.floor(math.sqrt(low * high))
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _upwards(value: float) -> float:
    """To three digits, for people."""
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return math.ceil(value * scale - 1e-9) / scale


def _key(one: Judged) -> tuple[str, str, str]:
    return one.kind, one.tag, one.name


def _with(system: System, tag: str, field: str, value: float) -> System:
    def change(stream: Stream) -> Stream:
        return msgspec.structs.replace(stream, **{field: value}) if stream.tag == tag else stream

    return msgspec.structs.replace(system, streams=tuple(map(change, system.streams)))


def _without(system: System, tag: str) -> System:
    return msgspec.structs.replace(system, streams=tuple(one for one in system.streams if one.tag != tag))


def _with_limit(system: System, judged: Judged, field: str, limit: float) -> System:
    def change(stream: Stream) -> Stream:
        if stream.tag != judged.tag:
            return stream
        name = "pulls" if judged.kind == "pull" else "subscribers"
        ones: Any = tuple(
            msgspec.structs.replace(one, **{field: limit}) if one.name == judged.name else one
            for one in getattr(stream, name)
        )
        return msgspec.structs.replace(stream, **{name: ones})

    return msgspec.structs.replace(system, streams=tuple(map(change, system.streams)))
