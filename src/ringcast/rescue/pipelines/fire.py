"""`fire`: a second reader of the same infrared (paper 004, figure 2): what is far too hot for a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType

from ringcast.rescue.pipelines.fuse import by_tick
from ringcast.rescue.pipelines.ticks import Fusion, Tick
from ringcast.rescue.tables import FIRES, GPS, INFRARED, POSE, SENSORS
from ringcast.rescue.vision.optics import Lens
from ringcast.rescue.vision.spots import FIRE_CENTIKELVIN
from ringcast.rescue.vision.tick import uav_eye
from ringcast.spark.declaration import pipeline
from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.pipelines.times import WATERMARK, instant
from ringcast.spark.tables.columns import DOUBLE, LONG, STRING, optional
from ringcast.spark.tables.upkeep import CLOCKS

_PLACES = ArrayType(optional(event_ns=LONG, uav=STRING, x=DOUBLE, y=DOUBLE, excess_k=DOUBLE))


@pipeline(
    "fire",
    "fires from infrared",
    reads={"infrared": INFRARED, "pose": POSE, "gps": GPS, "clocks": CLOCKS, "sensors": SENSORS},
    scan="messages",
    writes=FIRES,
    needs={"sensors": "the table sensors is empty; it says where cameras are and how they look"},
    key=("event_ns", "uav", "x", "y"),
    small=True,
)
def fire(
    messages: DataFrame, clocks: DataFrame, sensors: DataFrame, watermark: str = WATERMARK, *, how: Fusion | None = None
) -> DataFrame:
    """The columns of `gold.fires` but `run_id`. A frame is taken with its nearest pose and position."""
    how = how or Fusion()
    known: dict[str, dict[str, Any]] = {row.tag: row.asDict() for row in sensors.collect()}
    arrow = to_arrow_type(_PLACES)

    def find(ends: pa.Array, groups: pa.Array) -> pa.Array:
        ticks = (
            Tick(how, known, end_us, rows) for end_us, rows in zip(ends.to_pylist(), groups.to_pylist(), strict=True)
        )
        return pa.array([[one for frame in tick.frames() for one in _places(frame)] for tick in ticks], type=arrow)

    grouped = by_tick(messages, clocks, watermark, how)
    places = on_arrow(find, _PLACES)(F.unix_micros("event_time"), F.col("_seen"))
    each = grouped.select(F.explode(places).alias("_one")).select("_one.*")
    return each.select(instant(F.col("event_ns")).alias("event_time"), *each.columns)


def _places(frame: dict[str, Any]) -> list[dict[str, Any]]:
    hot = [spot for spot in frame["spots"] if spot["height"] >= FIRE_CENTIKELVIN]
    eye = uav_eye(frame)
    if eye is None or not hot:
        return []
    place, turn = eye
    rays = Lens(**frame["lens"]).rays(np.array([(s["u"], s["v"]) for s in hot]), turn)
    down = [(ray, spot) for ray, spot in zip(rays, hot, strict=True) if ray[2] < -1e-3]
    return [
        {
            "event_ns": frame["event_ns"], "uav": frame["tag"],
            "x": float(place[0] - ray[0] / ray[2] * place[2]), "y": float(place[1] - ray[1] / ray[2] * place[2]),
            "excess_k": spot["height"] / 100,
        }
        for ray, spot in down
    ]  # fmt: skip
