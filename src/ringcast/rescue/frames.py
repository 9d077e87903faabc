"""Images as the sensors take them. Pure, with the noise given by the caller's generator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringcast.rescue.vision.optics import Floats, Lens
from ringcast.rescue.world import World

GROUND_CENTIKELVIN = 29000.0
_INFRARED_NOISE = 12.0
_VIDEO_NOISE = 3.0


def infrared(
    world: World, t: float, place: Floats, turn: Floats, lens: Lens, random: np.random.Generator, noise: float = 1.0
) -> NDArray[np.uint16]:
    """0.01 K per count. Ground that is warmer on one side, noise (so many times the usual), and what is warm."""
    image = GROUND_CENTIKELVIN + np.linspace(-60, 60, lens.width)[None, :] + np.linspace(-30, 30, lens.height)[:, None]
    image = image + random.normal(0, noise * _INFRARED_NOISE, image.shape)
    heat = np.array([thing.warmth * 100 for thing in world.things])
    size = np.array([1.9 if thing.kind == "fire" else 0.85 for thing in world.things])
    _draw(image, world, t, place, turn, lens, heat, size)
    return np.clip(image, 0, 65535).astype(np.uint16)


def video(
    world: World, t: float, place: Floats, turn: Floats, lens: Lens, random: np.random.Generator, noise: float = 1.0
) -> NDArray[np.uint8]:
    """Grey. A street that is lighter towards the bottom, noise, and what stands out."""
    image = np.linspace(40, 70, lens.height)[:, None] + np.zeros(lens.width)[None, :]
    image = image + random.normal(0, noise * _VIDEO_NOISE, image.shape)
    light = np.array([thing.brightness for thing in world.things])
    size = np.full(len(light), 1.0)
    _draw(image, world, t, place, turn, lens, light, size)
    return np.clip(image, 0, 255).astype(np.uint8)


def _draw(
    image: Floats, world: World, t: float, place: Floats, turn: Floats, lens: Lens, height: Floats, size: Floats
) -> None:
    points = world.places(t)
    pixels, ahead = lens.pixels(points, place, turn)
    shown = (ahead > 0) & (height > 0) & world.visible(place, points)
    for (u, v), top, sigma in zip(pixels[shown], height[shown], size[shown], strict=True):
        reach = int(4 * sigma) + 1
        left, right = max(0, int(u) - reach), min(lens.width, int(u) + reach + 2)
        up, down = max(0, int(v) - reach), min(lens.height, int(v) + reach + 2)
        if left >= right or up >= down:
            continue
        across = np.exp(-0.5 * ((np.arange(left, right) - u) / sigma) ** 2)
        along = np.exp(-0.5 * ((np.arange(up, down) - v) / sigma) ** 2)
        image[up:down, left:right] += top * along[:, None] * across[None, :]
