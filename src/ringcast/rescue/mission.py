"""Who watches the world, when, and what they send: UAVs with infrared, pose and GPS, and street cameras with video.

Everything is a function of the settings and the instant, so that the same mission can be recorded at once or published
live. Each sensor is a node with a clock of its own: a UAV's camera is not its flight controller, and neither has the
street's time. Must not know where messages go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from ringcast.rescue import world
from ringcast.rescue.frames import infrared, video
from ringcast.rescue.vision.optics import Floats, Lens, turned

INFRARED_LENS = Lens(96, 72, np.radians(80.0))
VIDEO_LENS = Lens(128, 72, np.radians(75.0))

_NODES = {"ir": "uav{}-camera", "pose": "uav{}", "gps": "uav{}", "video": "street{}"}
"""Whose clock a message's times are by."""
_TAGS = {"ir": "uav/{}/ir", "pose": "uav/{}/pose", "gps": "uav/{}/gps", "video": "street/{}/video"}
_CODECS = {"ir": "numpy", "pose": "msgpack", "gps": "json", "video": "numpy"}


@dataclass(frozen=True)
class Settings:
    """`skew_ns` is how far a node's clock is ahead, by the node's name, in which `*` stands for anything."""

    seed: int = 7
    seconds: float = 4.0
    uavs: int = 2
    cameras: int = 4
    survivors: int = 6
    decoys: int = 2
    fires: int = 1
    apart_m: float = 5.0
    """How far things are from each other, at the start."""
    more_walls: int = 0
    noise: float = 1.0
    """Of both kinds of images, against the usual one."""
    infrared_hz: float = 10.0
    video_hz: float = 25.0
    pose_hz: float = 50.0
    gps_hz: float = 10.0
    loss: float = 0.0
    """Of packets. A message is lost when one of its packets is, so that frames are lost more often than poses."""
    duplicates: float = 0.0
    skew_ns: dict[str, int] = field(default_factory=dict)
    begin_ns: int = 1_767_268_800_000_000_000

    def skew_of(self, node: str) -> int:
        for name, skew in self.skew_ns.items():
            if fnmatchcase(node, name):
                return skew
        return 0


HARD = Settings(survivors=10, decoys=6, fires=2, apart_m=1.5, more_walls=4, noise=4.0)
"""More people, closer together, among more that looks like people, behind more walls, seen worse. Chosen once and not
looked at again: nothing was adjusted to it."""


class Sent(NamedTuple):
    """A message as its publisher makes it; `at_ns` in true time, which nobody's clock need show."""

    tag: str
    node: str
    at_ns: int
    codec: str
    value: Any


class Mission:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        s = settings
        self.world = world.build(
            s.seed, s.survivors, s.decoys, s.fires, apart=s.apart_m, more_walls=s.more_walls
        )  # fmt: skip

    def flight(self, uav: int, t: float) -> tuple[Floats, Floats, tuple[float, float, float], tuple[float, ...]]:
        """Place, speed, attitude (yaw, pitch, roll) and its rates: circles, in wind."""
        radius, pace = 11.0 + 2 * uav, 1.2 if uav % 2 == 0 else -1.1
        angle = pace * t + 2.1 * uav
        place = np.array([radius * np.cos(angle), radius * np.sin(angle), 34.0 + 3 * uav])
        speed = np.array([-radius * pace * np.sin(angle), radius * pace * np.cos(angle), 0.0])
        sway, rate = 0.06, 4.0 + uav
        pitch, roll = sway * np.sin(rate * t), sway * np.cos(0.8 * rate * t)
        rates = (pace, sway * rate * np.cos(rate * t), -sway * 0.8 * rate * np.sin(0.8 * rate * t))
        return place, speed, (angle, pitch, roll), rates

    def camera(self, camera: int) -> tuple[Floats, tuple[float, float, float]]:
        """Where a street camera is and how it looks: on poles around the square, towards its middle."""
        angle = 2 * np.pi * camera / self.settings.cameras + np.pi / 4
        place = np.array([33.0 * np.cos(angle), 33.0 * np.sin(angle), 9.0])
        return place, (float(angle + np.pi / 2), float(np.radians(75.0)), 0.0)

    def calibration(self) -> list[dict[str, Any]]:
        """What an installer writes down: the table `sensors`. A UAV's place and attitude come with its messages."""
        names = ("x", "y", "z", "yaw", "pitch", "roll")
        rows: list[dict[str, Any]] = []
        for camera in range(self.settings.cameras):
            place, attitude = self.camera(camera)
            fixed = dict(zip(names, [*map(float, place), *attitude], strict=True))
            rows.append({"tag": f"street/{camera}/video", **_described(VIDEO_LENS), **fixed})
        for uav in range(self.settings.uavs):
            rows.append({"tag": f"uav/{uav}/ir", **_described(INFRARED_LENS), **dict.fromkeys(names)})
        return rows

    def tags(self, mine: Callable[[str], bool] = lambda node: True) -> dict[str, str]:
        """What the nodes send on that `mine` selects, and by which codec."""
        counts = {"ir": self.settings.uavs, "pose": self.settings.uavs, "gps": self.settings.uavs}
        counts["video"] = self.settings.cameras
        return {
            _TAGS[kind].format(number): _CODECS[kind]
            for kind, count in counts.items()
            for number in range(count)
            if mine(_NODES[kind].format(number))
        }

    def messages(self, mine: Callable[[str], bool] = lambda node: True) -> Iterator[Sent]:
        """All that is sent, or what the nodes send that `mine` selects, in the order of true time."""
        s = self.settings
        due: list[tuple[int, int, str, int]] = []
        for kind, count, hz in (
            ("ir", s.uavs, s.infrared_hz), ("pose", s.uavs, s.pose_hz), ("gps", s.uavs, s.gps_hz),
            ("video", s.cameras, s.video_hz),
        ):  # fmt: skip
            for number in range(count):
                # Before anything is drawn: whoever plays one node does not pay for the pictures of the others.
                if not mine(_NODES[kind].format(number)):
                    continue
                period = 1e9 / hz
                # Frames in the middle of their tick; cameras run free, each with a phase of its own.
                phase = {"ir": 0.5, "pose": 0.1, "gps": 0.3}.get(kind, 0.13 + 0.21 * number) % 1.0
                due += [(round((k + phase) * period), number, kind, k) for k in range(int(s.seconds * hz))]
        for at, number, kind, k in sorted(due):
            yield getattr(self, f"_{kind}")(number, k, at)

    def seen(self, at_ns: int) -> list[tuple[world.Thing, Floats, int, int]]:
        """Every survivor at that instant: where it is, and how many UAVs and cameras have it in view, unhidden."""
        t = at_ns / 1e9
        points = self.world.places(t)
        eyes = [(*self._eye(uav, t), INFRARED_LENS, True) for uav in range(self.settings.uavs)]
        for camera in range(self.settings.cameras):
            place, attitude = self.camera(camera)
            eyes.append((place, turned(*attitude), VIDEO_LENS, False))
        counts = np.zeros((2, len(points)), dtype=int)
        for place, turn, lens, above in eyes:
            pixels, ahead = lens.pixels(points, place, turn)
            edge = 3.0
            inside = (ahead > 0) & np.all(pixels >= edge, axis=1)
            inside &= np.all(pixels <= np.array([lens.width, lens.height]) - 1 - edge, axis=1)
            counts[0 if above else 1] += inside & self.world.visible(place, points)
        return [
            (thing, points[at], int(counts[0, at]), int(counts[1, at]))
            for at, thing in enumerate(self.world.things)
            if thing.kind == "survivor"
        ]

    def _eye(self, uav: int, t: float) -> tuple[Floats, Floats]:
        place, _, attitude, _ = self.flight(uav, t)
        return place, turned(*attitude)

    def _noise(self, kind: int, number: int, k: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, kind, number, k])

    def _ir(self, uav: int, k: int, at: int) -> Sent:
        place, turn = self._eye(uav, at / 1e9)
        image = infrared(self.world, at / 1e9, place, turn, INFRARED_LENS, self._noise(1, uav, k), self.settings.noise)
        return _sent("ir", uav, at, image)

    def _video(self, camera: int, k: int, at: int) -> Sent:
        place, attitude = self.camera(camera)
        noise = self._noise(2, camera, k)
        image = video(self.world, at / 1e9, place, turned(*attitude), VIDEO_LENS, noise, self.settings.noise)
        return _sent("video", camera, at, image)

    def _pose(self, uav: int, k: int, at: int) -> Sent:
        _, _, attitude, rates = self.flight(uav, at / 1e9)
        shake = self._noise(3, uav, k).normal(0, 0.0005, 3)
        names = ("yaw", "pitch", "roll")
        value = {name: float(angle + shake[i]) for i, (name, angle) in enumerate(zip(names, attitude, strict=True))}
        value |= {f"{name}_rate": float(rate) for name, rate in zip(names, rates, strict=True)}
        return _sent("pose", uav, at, value)

    def _gps(self, uav: int, k: int, at: int) -> Sent:
        place, speed, _, _ = self.flight(uav, at / 1e9)
        shake = self._noise(4, uav, k).normal(0, 0.03, 3)
        value = {name: float(place[i] + shake[i]) for i, name in enumerate("xyz")}
        value |= {f"v{name}": float(speed[i]) for i, name in enumerate("xyz")}
        return _sent("gps", uav, at, value)


def _sent(kind: str, number: int, at: int, value: Any) -> Sent:
    return Sent(_TAGS[kind].format(number), _NODES[kind].format(number), at, _CODECS[kind], value)


def _described(lens: Lens) -> dict[str, Any]:
    return {"width": lens.width, "height": lens.height, "field_of_view": float(lens.field_of_view)}
