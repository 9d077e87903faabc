"""Spots in images: places that stand out from what is around them. Pure.

The background is taken to be smooth along rows and columns; its medians are subtracted, and what remains is held
against the image's own noise. So nothing has to be learned beforehand and every frame stands for itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringcast.rescue.vision.optics import Floats

WARM_CENTIKELVIN = 300.0
"""Infrared spots that rise less above the ground are not worth a look."""
FIRE_CENTIKELVIN = 6000.0
"""Nobody alive is that much warmer than the ground."""
BRIGHT = 20.0
"""The same for video, in grey levels."""

_REACH = 2
"""A spot is the highest within so many pixels, and its centre is weighed over as many."""
_FROM_MEDIAN = 1.4826
"""Of a normal distribution, the standard deviation over the median deviation."""


@dataclass(frozen=True)
class Spots:
    """Spots of one image: `pixels` (n, 2) as u, v; `height` above the background in the image's unit."""

    pixels: Floats
    height: Floats


def find_spots(image: NDArray[np.number], least: float, noises: float = 8.0) -> Spots:
    """Spots that rise at least `least`, and at least `noises` times the noise, above the background."""
    over: Floats = image.astype(np.float64) - _median(image, 1)
    over -= _median(over, 0)
    noise = _FROM_MEDIAN * float(_median(np.abs(over).ravel(), 0)[0])
    smooth = _smoothed(over)
    # Averaging nine pixels leaves a third of the noise.
    high = smooth >= max(least / 2, noises * noise / 3)
    high[:_REACH], high[-_REACH:], high[:, :_REACH], high[:, -_REACH:] = False, False, False, False
    tops = np.argwhere(high & (smooth == _highest_near(smooth)))
    pixels, heights = [], []
    grid = np.arange(-_REACH, _REACH + 1)
    for v, u in tops:
        patch = np.clip(over[v - _REACH : v + _REACH + 1, u - _REACH : u + _REACH + 1], 0.0, None)
        height = float(patch.max())
        if height < least:
            continue
        # Squared, so that the feet of a neighbour do not pull.
        weight = patch**2
        total = weight.sum()
        pixels.append((u + (weight.sum(axis=0) @ grid) / total, v + (weight.sum(axis=1) @ grid) / total))
        heights.append(height)
    return Spots(np.array(pixels, dtype=np.float64).reshape(-1, 2), np.array(heights, dtype=np.float64))


def _median(values: NDArray[np.number], axis: int) -> Floats:
    """As numpy's, of values that are all numbers: not looking for others takes half the time."""
    half, odd = divmod(values.shape[axis], 2)
    middle = [half] if odd else [half - 1, half]
    found = np.partition(values, middle, axis).take(middle, axis)
    out: Floats = found.mean(axis, dtype=np.float64, keepdims=True)
    return out


def _highest_near(image: Floats) -> Floats:
    """Of each pixel the greatest value within `_REACH`. Without meaning at the edges."""
    out = image.copy()
    for step in range(1, _REACH + 1):
        np.maximum(out[step:], image[:-step], out=out[step:])
        np.maximum(out[:-step], image[step:], out=out[:-step])
    rows = out.copy()
    for step in range(1, _REACH + 1):
        np.maximum(out[:, step:], rows[:, :-step], out=out[:, step:])
        np.maximum(out[:, :-step], rows[:, step:], out=out[:, :-step])
    return out


def _smoothed(image: Floats) -> Floats:
    wide = np.pad(image, 1, mode="edge")
    rows = wide[:-2] + wide[1:-1] + wide[2:]
    out: Floats = (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 9.0
    return out
