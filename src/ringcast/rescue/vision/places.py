"""Places in the world where rays of several sensors meet. Pure.

A ray of a UAV's infrared and one of a street camera that pass close by each other meet at the middle of their shortest
connection: a candidate. A survivor is a group of candidates from different sensors at one place. Rays cross by chance,
too; each spot is the image of one thing, so the largest group takes its spots away from all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringcast.rescue.vision.optics import Floats


@dataclass(frozen=True)
class Gate:
    """How close is close, in metres."""

    miss: float = 0.7
    group: float = 0.9
    lowest: float = -0.5
    highest: float = 4.5
    cameras: int = 2
    """Fewer cameras than this do not make a survivor: two rays always meet somewhere."""


@dataclass(frozen=True)
class Meeting:
    """Where rays i of one sensor and j of another meet: `places` (n, 3), how far they `miss` each other (n)."""

    i: np.ndarray
    j: np.ndarray
    places: Floats
    miss: Floats


@dataclass(frozen=True)
class Group:
    """Candidates that are one thing."""

    place: Floats
    spread: float
    members: list[int]


def meet(here: Floats, ours: Floats, there: Floats, theirs: Floats, gate: Gate) -> Meeting:
    """Which rays `ours` (n, 3) from `here` and `theirs` (m, 3) from `there` pass each other within the gate."""
    apart = there - here
    along = ours @ theirs.T
    a, b = ours @ apart, theirs @ apart
    slant = np.clip(1.0 - along**2, 1e-9, None)  # parallel rays meet nowhere near
    s = (a[:, None] - along * b[None, :]) / slant
    t = (along * a[:, None] - b[None, :]) / slant
    one = here + s[..., None] * ours[:, None, :]
    two = there + t[..., None] * theirs[None, :, :]
    miss = np.linalg.norm(one - two, axis=2)
    middle = (one + two) / 2
    height = middle[..., 2]
    good = (miss <= gate.miss) & (s > 0) & (t > 0) & (height >= gate.lowest) & (height <= gate.highest)
    i, j = np.nonzero(good)
    return Meeting(i, j, middle[i, j], miss[i, j])


def group(places: Floats, uav_spots: list[str], camera_spots: list[str], cameras: list[str], gate: Gate) -> list[Group]:
    """Largest groups first; `uav_spots` and `camera_spots` name the spot on either side of each candidate."""
    left = np.ones(len(places), dtype=bool)
    near = np.linalg.norm(places[:, None] - places[None], axis=2) <= gate.group
    uav, camera, where = (np.unique(names, return_inverse=True)[1] for names in (uav_spots, camera_spots, cameras))
    groups = []
    while left.any():
        close = near & left[None] & left[:, None]
        best = int(np.argmax(close.sum(axis=1)))
        members = np.flatnonzero(close[best])
        if len(np.unique(where[members])) >= gate.cameras:
            place = np.median(places[members], axis=0)
            spread = float(np.sqrt(np.mean(np.sum((places[members] - place) ** 2, axis=1))))
            groups.append(Group(place, spread, members.tolist()))
            left &= ~(np.isin(uav, uav[members]) | np.isin(camera, camera[members]))
        else:
            left[best] = False
    return groups


def confidence(uavs: int, cameras: int, spread: float, gate: Gate) -> float:
    """Every sensor that agrees halves the doubt; sensors that agree loosely count for less."""
    return float((1.0 - 0.5 ** (uavs + cameras)) * np.exp(-0.5 * (spread / gate.group) ** 2))
