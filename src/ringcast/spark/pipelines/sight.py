"""Frames become spots: the detection of `fuse` and `fire`, run on the frames inside an Arrow function."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.vision.spots import find_spots

_SPOTS = "array<struct<u: double, v: double, height: double>>"
_ARROW = pa.list_(pa.struct([("u", pa.float64()), ("v", pa.float64()), ("height", pa.float64())]))


def sight(frames: DataFrame, least: float) -> DataFrame:
    """The frames' origin, and in place of the image its `spots`."""

    def look(shapes: pa.Array, dtypes: pa.Array, images: pa.Array) -> pa.Array:
        found = []
        for shape, dtype, data in zip(shapes.to_pylist(), dtypes.to_pylist(), images, strict=True):
            spots = None
            if len(shape) == 2:
                image = np.frombuffer(data.as_buffer(), dtype).reshape(shape)
                spots = find_spots(image, least)
            rows = [] if spots is None else zip(spots.pixels.tolist(), spots.height.tolist(), strict=True)
            found.append([{"u": u, "v": v, "height": height} for (u, v), height in rows])
        return pa.array(found, type=_ARROW)

    spots = on_arrow(look, _SPOTS)(F.col("shape"), F.col("dtype"), F.col("data"))
    return frames.select("tag", "seq", "event_time", "event_ns", spots.alias("spots"))
