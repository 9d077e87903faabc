"""What is there: people, warm and bright things that are none, fires, and walls that hide them. Pure, seeded.

A survivor is warm and looks like a person. A warm decoy (an engine, an animal) shows in infrared alone, a bright one (a
dummy, a sign) in video alone, a fire in both and much hotter. Only who sees both at the same time and place can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringcast.rescue.vision.optics import Floats

Kind = Literal["survivor", "warm", "bright", "fire"]


@dataclass(frozen=True)
class Thing:
    """Moves along a sum of two slow circles about its home. `warmth` is in kelvin above the ground."""

    name: str
    kind: Kind
    home: Floats
    reach: float
    pace: float
    phase: float
    warmth: float
    brightness: float

    def at(self, t: float) -> Floats:
        slow, fast = self.pace * t + self.phase, 2.3 * self.pace * t + 2 * self.phase
        shift = np.array([np.cos(slow) + 0.3 * np.cos(fast), np.sin(slow) + 0.3 * np.sin(fast), 0.0])
        place: Floats = self.home + self.reach * shift
        return place


@dataclass(frozen=True)
class Wall:
    """A box that nothing is seen through."""

    low: Floats
    high: Floats

    def hides(self, eye: Floats, points: Floats) -> np.ndarray:
        """For each of points (n, 3), whether the straight way to the eye passes through."""
        way = points - eye
        safe = np.where(np.abs(way) < 1e-12, 1e-12, way)
        one, two = (self.low - eye) / safe, (self.high - eye) / safe
        enter, leave = np.minimum(one, two).max(axis=1), np.maximum(one, two).min(axis=1)
        hidden: np.ndarray = (enter < leave) & (leave > 0) & (enter < 1)
        return hidden


@dataclass(frozen=True)
class World:
    things: list[Thing]
    walls: list[Wall]

    def places(self, t: float) -> Floats:
        return np.array([thing.at(t) for thing in self.things])

    def visible(self, eye: Floats, points: Floats) -> np.ndarray:
        seen = np.ones(len(points), dtype=bool)
        for wall in self.walls:
            seen &= ~wall.hides(eye, points)
        return seen


def build(
    seed: int, survivors: int, decoys: int, fires: int, half: float = 18.0, apart: float = 5.0, more_walls: int = 0
) -> World:
    """A square of 2 x `half` metres with two walls and more, its things at least so far `apart` at the start."""
    random = np.random.default_rng(seed)
    walls = []
    for x, y in ((-7.0, 6.0), (8.0, -5.0), *_places(seed, more_walls, half)):
        walls.append(Wall(np.array([x - 2, y - 2, 0.0]), np.array([x + 2, y + 2, 5.0])))
    things: list[Thing] = []
    numbers: dict[Kind, int] = {"survivor": survivors, "warm": decoys, "bright": decoys, "fire": fires}
    for at, kind in enumerate(kind for kind, number in numbers.items() for _ in range(number)):
        home = _free(random, things, walls, half, apart)
        home[2] = 0.9 + (1.5 if kind == "survivor" and at % 3 == 2 else 0.0)  # some stand on rubble
        moving = kind in ("survivor", "warm", "bright")
        things.append(
            Thing(
                f"{kind}-{at}", kind, home, random.uniform(0.5, 1.2) if moving else 0.0, random.uniform(0.5, 0.9),
                random.uniform(0, 6.28),
                warmth={"survivor": random.uniform(9, 14), "warm": random.uniform(9, 14), "bright": 0.0,
                        "fire": random.uniform(150, 250)}[kind],
                brightness={"survivor": random.uniform(70, 110), "warm": 0.0, "bright": random.uniform(70, 110),
                            "fire": 120.0}[kind],
            )
        )  # fmt: skip
    return World(things, walls)


def _places(seed: int, number: int, half: float) -> list[tuple[float, float]]:
    # By chance of their own, so that who stands where does not depend on how many walls there are.
    random = np.random.default_rng([seed, 1])
    return [(random.uniform(-half, half), random.uniform(-half, half)) for _ in range(number)]


def _free(random: np.random.Generator, things: list[Thing], walls: list[Wall], half: float, apart: float) -> Floats:
    clear = 0.6 * apart
    while True:
        home = np.array([random.uniform(-half, half), random.uniform(-half, half), 0.9])
        in_wall = any(np.all(home[:2] > w.low[:2] - clear) and np.all(home[:2] < w.high[:2] + clear) for w in walls)
        if not in_wall and all(np.linalg.norm(home[:2] - thing.home[:2]) > apart for thing in things):
            return home
