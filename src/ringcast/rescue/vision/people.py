"""Detections of many ticks become people: who was seen again, where, and how surely. Pure.

A detection belongs to the person that was last seen nearest to it, if that is near enough for somebody on foot in the
time between. Each tick's detections are different people. Who was seen in too few ticks is nobody to send a team to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ringcast.rescue.vision.optics import Floats

NEAR_M = 1.5
PACE_M_S = 2.0
FORGET_S = 5.0
LEAST_TICKS = 3


@dataclass
class Person:
    """`at_ns`, `places`, `confidences` and `warmths` of its detections, in the order of time."""

    at_ns: list[int] = field(default_factory=list)
    places: list[Floats] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    warmths: list[float] = field(default_factory=list)

    @property
    def place(self) -> Floats:
        """Where it is now: the median of its last second."""
        recent = [p for p, at in zip(self.places, self.at_ns, strict=True) if self.at_ns[-1] - at <= 1_000_000_000]
        middle: Floats = np.median(np.array(recent), axis=0)
        return middle

    @property
    def accuracy_m(self) -> float:
        """How far its detections of the last second lie from there."""
        recent = [p for p, at in zip(self.places, self.at_ns, strict=True) if self.at_ns[-1] - at <= 1_000_000_000]
        return float(np.sqrt(np.mean(np.sum((np.array(recent) - self.place) ** 2, axis=1))))


def people(at_ns: list[int], places: Floats, confidences: list[float], warmths: list[float]) -> list[Person]:
    """Detections, (n) and (n, 3), to people; those seen in most ticks first."""
    found: list[Person] = []
    order = sorted(range(len(at_ns)), key=lambda i: at_ns[i])
    ticks: dict[int, list[int]] = {}
    for i in order:
        ticks.setdefault(at_ns[i], []).append(i)
    for at, members in ticks.items():
        pairs = []
        for i in members:
            for who, person in enumerate(found):
                since = (at - person.at_ns[-1]) / 1e9
                apart = float(np.linalg.norm(places[i] - person.places[-1]))
                if since <= FORGET_S and apart <= NEAR_M + PACE_M_S * since:
                    pairs.append((apart, i, who))
        taken: dict[int, int] = {}
        for _, i, who in sorted(pairs):
            if i not in taken and who not in taken.values():
                taken[i] = who
        for i in members:
            if i not in taken:
                found.append(Person())
                taken[i] = len(found) - 1
            person = found[taken[i]]
            person.at_ns.append(at)
            person.places.append(places[i])
            person.confidences.append(confidences[i])
            person.warmths.append(warmths[i])
    known = [person for person in found if len(person.at_ns) >= LEAST_TICKS]
    return sorted(known, key=lambda person: (-len(person.at_ns), person.at_ns[0]))
