"""Tables and tags of the search and rescue: what its sensors send, what is found, and apart from it the truth."""

from __future__ import annotations

from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRING, STRINGS, TIME, columns, join, optional
from ringcast.spark.tables.gold import RUN
from ringcast.spark.tables.silver import ARRAY, Family
from ringcast.spark.tables.table import HOURLY, WHOLE, Table

INFRARED = Family("infrared", "uav/*/ir", ARRAY, "infrared frames of UAVs, uint16 of 0.01 K")
VIDEO = Family("video", "street/*/video", ARRAY, "grey video frames of street cameras, uint8")
POSE = Family(
    "pose",
    "uav/*/pose",
    columns(yaw=DOUBLE, pitch=DOUBLE, roll=DOUBLE, yaw_rate=DOUBLE, pitch_rate=DOUBLE, roll_rate=DOUBLE),
    "attitude of UAVs in radians, with rates per second",
)
GPS = Family(
    "gps",
    "uav/*/gps",
    columns(x=DOUBLE, y=DOUBLE, z=DOUBLE, vx=DOUBLE, vy=DOUBLE, vz=DOUBLE),
    "position of UAVs in metres east, north and up of the origin, with speeds",
)

DETECTIONS = Table(
    "gold.detections",
    "survivors, in 3-D, by tick",
    join(
        columns(
            event_time=TIME, event_ns=LONG, x=DOUBLE, y=DOUBLE, z=DOUBLE, spread_m=DOUBLE, confidence=DOUBLE,
            warmth_k=DOUBLE, sightings=INT, uavs=STRINGS, cameras=STRINGS,
        ),
        RUN,
    ),
    HOURLY,
)  # fmt: skip

FIRES = Table(
    "gold.fires",
    "fires seen from above, one row per UAV frame and spot",
    join(columns(event_time=TIME, event_ns=LONG, uav=STRING, x=DOUBLE, y=DOUBLE, excess_k=DOUBLE), RUN),
    HOURLY,
)

SENSORS = Table(
    "sensors",
    "lenses, and where sensors are that do not move: metres and radians as in ringcast.rescue.vision.optics",
    join(
        columns(tag=STRING, width=INT, height=INT, field_of_view=DOUBLE),
        optional(x=DOUBLE, y=DOUBLE, z=DOUBLE, yaw=DOUBLE, pitch=DOUBLE, roll=DOUBLE),
    ),
    WHOLE,
)

TRUTH = Table(
    "truth",
    "where survivors were, for missions that were made up; only scoring reads it",
    columns(event_ns=LONG, survivor=STRING, x=DOUBLE, y=DOUBLE, z=DOUBLE, uavs=INT, cameras=INT),
    WHOLE,
)

DISPATCH = Table(
    "gold.dispatch",
    "people that were found: where they are now, and how sure that is",
    join(
        columns(person=STRING, event_time=TIME, first_seen=TIME, x=DOUBLE, y=DOUBLE, z=DOUBLE, accuracy_m=DOUBLE,
                ticks=INT, confidence=DOUBLE, warmth_k=DOUBLE),
        RUN,
    ),
    WHOLE,
)  # fmt: skip
"""`event_time` is when they were last seen; `accuracy_m` how far the last second's detections are from there."""
