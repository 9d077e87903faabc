"""The camera: from a point in the world to a pixel, and from a pixel to a ray. Pure.

World: metres east, north, up. A sensor with yaw, pitch and roll of 0 looks straight down, the top of its image to the
north; pitch tilts it up (a quarter turn looks north, level), yaw turns it counter-clockwise. Pixels: u to the right, v
down, from the centre of the top left one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_DOWN: Floats = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])


@dataclass(frozen=True)
class Lens:
    """An image's size and how wide it looks."""

    width: int
    height: int
    field_of_view: float

    @property
    def focal(self) -> float:
        """In pixels."""
        return self.width / 2 / float(np.tan(self.field_of_view / 2))

    def pixels(self, points: Floats, place: Floats, turn: Floats) -> tuple[Floats, Floats]:
        """Where points appear, as (n, 2), and how far they are ahead (n); behind the sensor that is negative."""
        seen = (points - place) @ turn
        ahead = seen[:, 2]
        safe = np.where(ahead > 1e-6, ahead, np.nan)
        centre = np.array([(self.width - 1) / 2, (self.height - 1) / 2])
        return seen[:, :2] / safe[:, None] * self.focal + centre, ahead

    def rays(self, pixels: Floats, turn: Floats) -> Floats:
        """Unit vectors in the world, (n, 3), through pixels (n, 2)."""
        centre = np.array([(self.width - 1) / 2, (self.height - 1) / 2])
        flat = (pixels - centre) / self.focal
        ahead = np.concatenate([flat, np.ones((len(pixels), 1))], axis=1)
        world: Floats = ahead @ turn.T
        world /= np.linalg.norm(world, axis=1, keepdims=True)
        return world


def turned(yaw: float, pitch: float, roll: float) -> Floats:
    """The matrix whose columns are the sensor's right, down and ahead in the world."""
    cy, sy, cp, sp, cr, sr = (f(a) for a in (yaw, pitch, roll) for f in (np.cos, np.sin))
    about_up = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1.0]])
    about_east = np.array([[1.0, 0, 0], [0, cp, -sp], [0, sp, cp]])
    about_north = np.array([[cr, 0, sr], [0, 1.0, 0], [-sr, 0, cr]])
    out: Floats = about_up @ about_east @ about_north @ _DOWN
    return out
