"""The last step of `fuse` as Spark sees it: the columns that are collected of a tick, and an Arrow function on them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType

from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.tables.columns import BOOL, DOUBLE, INT, LONG, STRING, STRINGS, optional
from ringcast.spark.vision.places import Gate
from ringcast.spark.vision.tick import fix_tick, square

SPOTS = ArrayType(optional(u=DOUBLE, v=DOUBLE, height=DOUBLE))

TICK = optional(
    tag=STRING, seq=LONG, event_ns=LONG, home=BOOL, spots=SPOTS,
    lens=optional(width=INT, height=INT, field_of_view=DOUBLE),
    pose_ns=LONG, pose_yaw=DOUBLE, pose_pitch=DOUBLE, pose_roll=DOUBLE, pose_yaw_rate=DOUBLE, pose_pitch_rate=DOUBLE,
    pose_roll_rate=DOUBLE,
    gps_ns=LONG, gps_x=DOUBLE, gps_y=DOUBLE, gps_z=DOUBLE, gps_vx=DOUBLE, gps_vy=DOUBLE, gps_vz=DOUBLE,
    video_tag=STRING, video_seq=LONG, video_ns=LONG, video_home=BOOL, video_spots=SPOTS,
    video_camera=optional(x=DOUBLE, y=DOUBLE, z=DOUBLE, yaw=DOUBLE, pitch=DOUBLE, roll=DOUBLE, width=INT, height=INT,
                          field_of_view=DOUBLE),
)  # fmt: skip
"""What is collected of each pair of frames, or of one that has no partner. The order is that of the columns."""

FOUND = optional(
    frames=LONG, without_pose=LONG, without_gps=LONG, without_video=LONG, unmatched_video=LONG,
    survivors=ArrayType(
        optional(x=DOUBLE, y=DOUBLE, z=DOUBLE, spread_m=DOUBLE, confidence=DOUBLE, warmth_k=DOUBLE, sightings=INT,
                 uavs=STRINGS, cameras=STRINGS)
    ),
)  # fmt: skip


def fixed(members: Column, cell: Column, cell_m: float, gate: Gate) -> Column:
    """What the pairs of a tick and cell amount to: counts, and survivors inside the cell."""
    arrow = to_arrow_type(FOUND)

    def fix(ticks: pa.Array, cells: pa.Array) -> pa.Array:
        pairs = zip(ticks.to_pylist(), cells.to_pylist(), strict=True)
        return pa.array([fix_tick(rows, gate, square(name, cell_m)) for rows, name in pairs], type=arrow)

    return on_arrow(fix, FOUND)(members.cast(ArrayType(TICK)), cell)
