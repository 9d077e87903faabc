"""Who takes part in the search and rescue, and on which node. Pure values."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ringcast.rescue import Settings

SKY, STREET, BASE = "sky", "street", "base"
NODES = (SKY, STREET, BASE)
SENSORS = ("uav/**", "street/**")
CHANNELS = "@ringcast/*/channels"
DETECTIONS = "sar/detections"

SETTINGS = Settings(seconds=600.0, uavs=2, cameras=4)
"""Far longer than anybody watches: sensors send until they are told to end."""

WEAK_TAG, WEAK_SIZE, WEAK_HZ, PROXY = "uav/0/ir", (48, 36), 4.0, f"node:{STREET}"
"""What a handheld can take: a quarter of the picture and less than half of the rate, scaled on a node in between."""


class Role(NamedTuple):
    """`number` is that of the UAV or camera."""

    name: str
    kind: Literal["uav", "camera", "recorder", "handheld"]
    node: str
    number: int = 0

    def plays(self, sensor: str) -> bool:
        """Whether it sends what that sensor of the mission does."""
        if self.kind == "uav":
            return sensor in (f"uav{self.number}", f"uav{self.number}-camera")
        return self.kind == "camera" and sensor == f"street{self.number}"


SENDERS = (
    *(Role(f"uav{n}", "uav", SKY, n) for n in range(SETTINGS.uavs)),
    *(Role(f"camera{n}", "camera", STREET, n) for n in range(SETTINGS.cameras)),
)
RECORDER = Role("recorder", "recorder", BASE)
HANDHELD = Role("handheld", "handheld", BASE)
ROLES = {role.name: role for role in (*SENDERS, RECORDER, HANDHELD)}
