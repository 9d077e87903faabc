"""Who takes part in the demo, and on which tags. Pure values; what each does is in `publishers` and `subscribers`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SENSOR, CAMERA, THERMOMETER, STARTUP = "demo/sensor", "demo/camera", "demo/thermometer", "demo/startup"

TAGS: dict[str, dict[str, Any]] = {
    SENSOR: {"depth": 512},  # small, so that a slow reader is overtaken within the demo
    CAMERA: {"codec": "numpy", "schema": {"dtype": "uint8", "shape": [320, 320]}, "capacity_bytes": 8 * 1024 * 1024},
    THERMOMETER: {"codec": "json"},
    STARTUP: {"codec": "json"},
}


class Role(msgspec.Struct, frozen=True):
    """One process. `selects` is the tag or the pattern; `how` says what is special about it."""

    name: str
    kind: Literal["publisher", "subscriber"]
    selects: str
    how: str


STARTER = Role("startup", "publisher", STARTUP, "sends three records and exits")

PUBLISHERS = (
    Role("sensor", "publisher", SENSOR, "64 bytes, 1 kHz"),
    Role("camera", "publisher", CAMERA, "NumPy frames of 100 KiB, 30 Hz"),
    Role("thermometer", "publisher", THERMOMETER, "JSON records, 2 Hz"),
)

SUBSCRIBERS = (
    Role("eager", "subscriber", SENSOR, "as fast as they come"),
    Role("slow", "subscriber", SENSOR, "takes 20 ms each: loses, and is told"),
    Role("reliable", "subscriber", SENSOR, "the publisher waits for it"),
    Role("viewer", "subscriber", CAMERA, "asyncio"),
    Role("display", "subscriber", THERMOMETER, "callback"),
    Role("everything", "subscriber", "demo/**", "wildcard"),
)
