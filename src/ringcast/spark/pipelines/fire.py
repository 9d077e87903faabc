"""`fire`: a second reader of the same infrared (paper 004, figure 2): what is far too hot for a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.pipelines.fuse import Fusion, locate
from ringcast.spark.pipelines.sight import sight
from ringcast.spark.vision.optics import Lens
from ringcast.spark.vision.spots import FIRE_CENTIKELVIN
from ringcast.spark.vision.tick import uav_eye

_PLACE = "struct<x: double, y: double, excess_k: double>"
_ARROW = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64()), ("excess_k", pa.float64())]))
_FAR = 2**62
_NEEDED = (
    "event_ns", "lens", "spots", "pose_ns", "pose_yaw", "pose_pitch", "pose_roll", "pose_yaw_rate", "pose_pitch_rate",
    "pose_roll_rate", "gps_ns", "gps_x", "gps_y", "gps_z", "gps_vx", "gps_vy", "gps_vz",
)  # fmt: skip


def fire(
    infrared: DataFrame, pose: DataFrame, gps: DataFrame, sensors: DataFrame, how: Fusion | None = None
) -> DataFrame:
    """The columns of `gold.fires` but `run_id`. A frame is taken with its nearest pose and position."""
    hot = sight(infrared, FIRE_CENTIKELVIN).where(F.size("spots") > 0)
    located = locate(hot, pose, gps, sensors, how or Fusion())
    # The earlier of two that are equally near, or the order in which rows came would decide.
    apart = [F.abs(F.col(f"{kind}_ns") - F.col("event_ns")) for kind in ("pose", "gps")]
    nearest = F.struct(*(F.coalesce(ns, F.lit(_FAR)) for ns in apart), "pose_ns", "gps_ns")
    frame = F.min_by(F.struct(*(F.col(name) for name in _NEEDED)), nearest)
    once = located.groupBy("event_time", "tag", "seq").agg(frame.alias("_frame"))
    places = on_arrow(_on_the_ground, f"array<{_PLACE}>")(F.col("_frame"))
    each = once.select(
        "event_time", F.col("_frame.event_ns").alias("event_ns"), F.col("tag").alias("uav"),
        F.explode(places).alias("_one"),
    )  # fmt: skip
    return each.select("event_time", "event_ns", "uav", "_one.*")


def _on_the_ground(frames: pa.Array) -> pa.Array:
    return pa.array([_places(frame) for frame in frames.to_pylist()], type=_ARROW)


def _places(frame: dict[str, Any]) -> list[dict[str, float]]:
    eye = uav_eye(frame)
    if eye is None:
        return []
    place, turn = eye
    rays = Lens(**frame["lens"]).rays(np.array([(s["u"], s["v"]) for s in frame["spots"]]), turn)
    down = [(ray, spot) for ray, spot in zip(rays, frame["spots"], strict=True) if ray[2] < -1e-3]
    return [
        {
            "x": float(place[0] - ray[0] / ray[2] * place[2]),
            "y": float(place[1] - ray[1] / ray[2] * place[2]),
            "excess_k": spot["height"] / 100,
        }
        for ray, spot in down
    ]
