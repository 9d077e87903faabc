"""The answer: for everyone who set a limit, the worst-case delay, where the time goes, and whether it fits. Pure."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ringcast.admission.analysis import Analysis, analyse
from ringcast.admission.model import NS, Class, System
from ringcast.admission.priorities import class_of_rank
from ringcast.admission.steps import End, Step

AGE = "next message"
"""The part of a pull's age that is the publisher's period: the newest message may be nearly as old."""


class Part(msgspec.Struct, frozen=True):
    """`alone_s` is what it takes when nothing else is there; the rest is waiting for others."""

    what: str
    where: str
    worst_s: float
    alone_s: float


class Judged(msgspec.Struct, frozen=True):
    """One subscriber, pull client or task. `bound_s` is infinite when there is none. `age_s` is how old the newest
    message that somebody has can get before the next one is there."""

    kind: str
    tag: str
    name: str
    node: str
    priority: Class
    bound_s: float
    limit_s: float | None
    age_s: float
    parts: tuple[Part, ...]

    @property
    def met(self) -> bool:
        return self.limit_s is None or self.bound_s <= self.limit_s

    @property
    def over_s(self) -> float:
        """By how much the limit is missed."""
        return 0.0 if self.limit_s is None else max(0.0, self.bound_s - self.limit_s)

    @property
    def who(self) -> str:
        return f"task {self.name}" if self.kind == "task" else f"{self.tag} to {self.name}"

    @property
    def longest(self) -> Part:
        return max(self.parts, key=lambda part: part.worst_s)

    def sentence(self) -> str:
        """What is missed, by how much, and which part takes longest."""
        limit = "age" if self.kind == "pull" else "deadline"
        if self.limit_s is None:
            return f"{self.who}: {_time(self.bound_s)} at most; it asks for nothing"
        if self.met:
            return f"{self.who}: {_time(self.bound_s)} at most, {limit} {_time(self.limit_s)}"
        part = self.longest
        if math.isinf(self.bound_s):
            full = next(part for part in self.parts if math.isinf(part.worst_s))
            return f"{self.who}: no bound, because more is asked for than {full.where} can do ({full.what})"
        return (
            f"{self.who}: {_time(self.bound_s)} at worst, {limit} {_time(self.limit_s)}, missed by "
            f"{_time(self.over_s)}; "
            f"longest is {part.what} ({part.where}) with {_time(part.worst_s)}, {_time(part.alone_s)} of it its own"
        )


class Verdict(msgspec.Struct, frozen=True):
    judged: tuple[Judged, ...]
    nodes: dict[str, float]
    """Cores that are busy on average."""
    links: dict[str, float]
    """Share of the link that is used, by direction."""

    @property
    def admitted(self) -> bool:
        return all(one.met for one in self.judged)

    @property
    def refused(self) -> list[Judged]:
        return [one for one in self.judged if not one.met]

    def document(self) -> dict[str, Any]:
        """For JSON, which has no infinity."""
        return {
            "admitted": self.admitted,
            "streams": [_document(one) for one in self.judged],
            "nodes": self.nodes,
            "links": self.links,
        }


def judge(system: System) -> Verdict:
    """Raises AdmissionError."""
    found = analyse(system)
    names = [node.name for node in system.nodes]
    ways = {}
    for (link, direction), share in found.links.items():
        ends = (found.plan.links[link].a, found.plan.links[link].b)
        ways[" to ".join(ends[::-1] if direction else ends)] = share
    return Verdict(
        tuple(_judged(found, end) for end in found.plan.ends),
        dict(zip(names, found.cores, strict=True)),
        ways,
    )


def _judged(found: Analysis, end: End) -> Judged:
    way = [_part(found, step) for step in found.plan.way(end.last)]
    first = found.plan.way(end.last)[0].number
    bound = found.end_ns[end.last] / NS
    if jitter := found.plan.jitter_ns.get(first, 0):
        way.insert(0, Part("late start", found.plan.steps[first].where, jitter / NS, jitter / NS))
    age = bound + end.period_ns / NS
    if end.kind == "pull":
        answer = [_part(found, step) for step in _answer(found, end)]
        period = end.period_ns / NS
        way = [Part(AGE, found.plan.steps[first].where, period, period), *way, *answer]
        bound = age = math.fsum(part.worst_s for part in way)
    return Judged(
        end.kind, end.tag, end.name, end.node, class_of_rank(end.rank), bound, end.limit_s, age, tuple(way)
    )  # fmt: skip


def _answer(found: Analysis, end: End) -> list[Step]:
    """Of a pull, what happens after the buffer was read: a question on its way makes nothing older."""
    way = found.plan.way(end.reply)
    read = next(i for i, step in enumerate(way) if step.what == "pull")
    return way[read:]


def _part(found: Analysis, step: Step) -> Part:
    worst = found.delay_ns[step.number] / NS
    if step.kind == "work":
        alone = step.compute_ns / NS
    elif step.kind == "link":
        link = found.plan.links[step.link]
        alone = link.latency_s + step.wire_bytes / link.bandwidth
    else:
        alone = worst
    return Part(step.what, step.where, worst, min(alone, worst))


def _document(one: Judged) -> dict[str, Any]:
    return {
        "kind": one.kind, "tag": one.tag, "name": one.name, "node": one.node, "priority": one.priority,
        "bound_s": _finite(one.bound_s), "limit_s": one.limit_s, "met": one.met, "over_s": _finite(one.over_s),
        "age_s": _finite(one.age_s),
        "parts": [
            {"what": part.what, "where": part.where, "worst_s": _finite(part.worst_s), "alone_s": part.alone_s}
            for part in one.parts
        ],
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time(seconds: float) -> str:
    if math.isinf(seconds):
        return "without bound"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"
