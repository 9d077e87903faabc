"""Two more consumers of the search and rescue's streams (paper 004, section 2.2.1), in a package of their own.

`heating` reads the infrared that survivors and fires are found in, and `crowds` the same video: nobody who sends has to
know of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.rescue.tables import INFRARED, VIDEO
from ringcast.rescue.vision.spots import BRIGHT, find_spots
from ringcast.spark.declaration import pipeline
from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.columns import BOOL, DOUBLE, INT, LONG, STRING, TIME, columns
from ringcast.spark.tables.table import HOURLY, Table

HEATING = Table(
    "gold.heating",
    "how warm the ground below a UAV is, and how much of it gives off heat",
    columns(event_time=TIME, uav=STRING, ground_k=DOUBLE, warm_share=DOUBLE, frames=LONG, run_id=STRING),
    HOURLY,
)
CROWDS = Table(
    "gold.crowds",
    "how many stand in front of a street camera",
    columns(event_time=TIME, camera=STRING, most=INT, mean=DOUBLE, crowded=BOOL, frames=LONG, run_id=STRING),
    HOURLY,
)


@pipeline(
    "heating",
    "where the ground gives off heat",
    reads={"infrared": INFRARED},
    writes=HEATING,
    expect=[Expectation("the ground is on earth", "ground_k between 200 and 350", "quarantine")],
    key=["event_time", "uav"],
    small=True,
)
def heating(infrared: DataFrame, *, window_s: float = 1.0, warmer_k: float = 2.0) -> DataFrame:
    """A pixel is warm when it is so many kelvin above the frame's median, which is the ground."""

    def look(shapes: pa.Array, dtypes: pa.Array, images: pa.Array) -> pa.Array:
        found = []
        for dtype, data in zip(dtypes.to_pylist(), images, strict=True):
            kelvin = np.frombuffer(data.as_buffer(), dtype) / 100.0
            ground = float(np.median(kelvin))
            found.append({"ground": ground, "warm": float(np.mean(kelvin > ground + warmer_k))})
        return pa.array(found, pa.struct([("ground", pa.float64()), ("warm", pa.float64())]))

    seen = on_arrow(look, "struct<ground: double, warm: double>")(F.col("shape"), F.col("dtype"), F.col("data"))
    frames = infrared.select("event_time", "tag", seen.alias("seen"))
    grouped = frames.groupBy(_window(window_s), "tag").agg(
        F.avg("seen.ground").alias("ground_k"), F.avg("seen.warm").alias("warm_share"), F.count("*").alias("frames")
    )
    return grouped.select(
        F.col("span.start").alias("event_time"), F.col("tag").alias("uav"), "ground_k", "warm_share", "frames"
    )


@pipeline(
    "crowds",
    "how many stand in front of street cameras",
    reads={"video": VIDEO},
    writes=CROWDS,
    key=["event_time", "camera"],
    small=True,
)
def crowds(video: DataFrame, *, window_s: float = 1.0, many: int = 4) -> DataFrame:
    """Who plunders comes in numbers: `crowded` says that at least `many` were seen at once."""

    def count(shapes: pa.Array, dtypes: pa.Array, images: pa.Array) -> pa.Array:
        found = []
        for shape, dtype, data in zip(shapes.to_pylist(), dtypes.to_pylist(), images, strict=True):
            found.append(len(find_spots(np.frombuffer(data.as_buffer(), dtype).reshape(shape), BRIGHT).height))
        return pa.array(found, pa.int32())

    people = on_arrow(count, "int")(F.col("shape"), F.col("dtype"), F.col("data"))
    frames = video.where("size(shape) = 2").select("event_time", "tag", people.alias("people"))
    grouped = frames.groupBy(_window(window_s), "tag").agg(
        F.max("people").alias("most"), F.avg("people").alias("mean"), F.count("*").alias("frames")
    )
    return grouped.select(
        F.col("span.start").alias("event_time"), F.col("tag").alias("camera"), "most", "mean",
        (F.col("most") >= many).alias("crowded"), "frames",
    )  # fmt: skip


def _window(seconds: float):  # type: ignore[no-untyped-def]
    return F.window("event_time", f"{round(seconds * 1000)} milliseconds").alias("span")
