"""`fuse`: survivors, from infrared of UAVs with their pose and GPS, and video of street cameras.

    messages -> one look at each (`looking`) -> once for every tick that needs it -> one group a tick (`ticks`)

One scan, one function on Arrow batches and one aggregate: everything that is near in time meets inside the group, and
not in a join with state of its own. So a batch costs little, and a job and a stream go through the same code. A tick
counts what found no partner, what came twice, what was lost before, and what could not be read. The truth is not among
the inputs.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type

from ringcast.rescue.pipelines.looking import KINDS, SEEN, looked
from ringcast.rescue.pipelines.ticks import COUNTS, FOUND, Fusion, Tick
from ringcast.rescue.tables import DETECTIONS, GPS, INFRARED, POSE, SENSORS, VIDEO
from ringcast.spark.declaration import pipeline
from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.pipelines.times import WATERMARK, translate, watched
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.upkeep import CLOCKS


def survivors(found: DataFrame) -> DataFrame:
    """The columns of `gold.detections` but `run_id`, one row per survivor and tick."""
    return found.select("event_time", "event_ns", F.inline("survivors"))


def tally(found: DataFrame) -> DataFrame:
    """How many infrared frames were fused, how many frames found no partner, and in how many `ticks`, in one row."""
    return found.agg(*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in (*COUNTS, "ticks")))


@pipeline(
    "fuse",
    "survivors from infrared and video",
    reads={"infrared": INFRARED, "pose": POSE, "gps": GPS, "video": VIDEO, "clocks": CLOCKS, "sensors": SENSORS},
    scan="messages",
    writes=DETECTIONS,
    expect=(
        Expectation("confidence is a probability", "confidence between 0 and 1", "fail"),
        Expectation("position is finite", "x + y + z < 1e9 and x + y + z > -1e9", "quarantine"),
    ),
    needs={"sensors": "the table sensors is empty; it says where cameras are and how they look"},
    key=("event_ns", "x", "y", "z"),
    small=True,
    each="survivors",
    tally=(*COUNTS, "ticks"),
)
def fuse(
    messages: DataFrame, clocks: DataFrame, sensors: DataFrame, watermark: str = WATERMARK, *, how: Fusion | None = None
) -> DataFrame:
    """Messages of the four families, as received, to ticks, whose time is their middle: `survivors`, and the numbers of
    COUNTS."""
    how = how or Fusion()
    grouped = by_tick(messages, clocks, watermark, how)
    found = grouped.withColumn("_found", _fixed(how, sensors)(F.unix_micros("event_time"), F.col("_seen")))
    middle = F.unix_micros("event_time") - how.tick_us // 2
    ticks = found.select(
        F.timestamp_micros(middle).alias("event_time"), (middle * 1000).alias("event_ns"), "_found.*",
        F.when(F.col("_found.frames") > 0, 1).otherwise(0).alias("ticks"),
    )  # fmt: skip
    return ticks.where(" + ".join(COUNTS) + " > 0")


def by_tick(messages: DataFrame, clocks: DataFrame, watermark: str, how: Fusion) -> DataFrame:
    """One row per tick: its end as `event_time`, and in `_seen` what was seen in it and as far around it as it needs.

    The end is its event time: a tick is complete when what is so much later has come.
    """
    seen = looked(translate(messages, clocks))
    spread = seen.withColumn("event_time", F.explode(_ends(how)))
    return watched(spread, watermark).groupBy("event_time").agg(F.collect_list(F.struct(*SEEN)).alias("_seen"))


def _ends(how: Fusion) -> Column:
    """The ends of the ticks that need a row: its own, and those that look as far as it is."""
    us = F.unix_micros("event_time")
    reach = F.element_at(F.array(*(F.lit(how.reach_us[kind]) for kind in KINDS)), F.col("kind") + 1)
    first, last = (F.call_function("div", us + way * reach, F.lit(how.tick_us)) for way in (-1, 1))
    return F.transform(F.sequence(first, last), lambda tick: F.timestamp_micros((tick + 1) * how.tick_us))


def _fixed(how: Fusion, sensors: DataFrame) -> Any:
    known: dict[str, dict[str, Any]] = {row.tag: row.asDict() for row in sensors.collect()}
    arrow = to_arrow_type(FOUND)

    def fix(ends: pa.Array, groups: pa.Array) -> pa.Array:
        pairs = zip(ends.to_pylist(), groups.to_pylist(), strict=True)
        return pa.array([Tick(how, known, end_us, rows).found() for end_us, rows in pairs], type=arrow)

    return on_arrow(fix, FOUND)
