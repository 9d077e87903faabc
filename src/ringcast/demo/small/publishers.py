"""The demo's publishers. Each runs until it is told to end, on a tag that was created before."""

from __future__ import annotations

import math
import random
import struct
import time

from ringcast.demo.small.ending import Ending
from ringcast.demo.small.roles import CAMERA, SENSOR, STARTUP, THERMOMETER
from ringcast.session import Session

_READING = struct.Struct("<Q7d")


def sensor(session: Session, ending: Ending) -> None:
    """An inertial sensor: a number and seven readings, 64 bytes, a thousand times a second."""
    with session.publisher(SENSOR, on_slow="skip") as publisher:
        for tick in ending.ticks(1000.0):
            angle = tick / 1000.0
            publisher.send(_READING.pack(tick, *(math.sin(angle * axis) for axis in range(1, 8))))


def camera(session: Session, ending: Ending) -> None:
    """A moving gradient. The shutter's time goes with each frame as its event time."""
    import numpy as np

    frame = np.add.outer(np.arange(320, dtype=np.uint8), np.arange(320, dtype=np.uint8))
    with session.publisher(CAMERA, on_slow="skip") as publisher:
        for _ in ending.ticks(30.0):
            shutter_ns = time.time_ns()
            frame += 3
            publisher.send(frame, event_ns=shutter_ns)


def thermometer(session: Session, ending: Ending) -> None:
    """A slow walk around 21 degrees, the same at every demo."""
    chance = random.Random(21)
    celsius = 21.0
    with session.publisher(THERMOMETER, on_slow="skip") as publisher:
        for _ in ending.ticks(2.0):
            celsius += chance.uniform(-0.1, 0.1)
            publisher.send({"celsius": round(celsius, 2), "room": "lab"})


def startup(session: Session, ending: Ending) -> None:
    """Says what it has to say and is gone; its history stays."""
    with session.publisher(STARTUP) as publisher:
        for step in ("power on", "self test passed", "ready"):
            publisher.send({"step": step})
