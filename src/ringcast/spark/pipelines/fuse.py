"""`fuse`: survivors, from infrared of UAVs with their pose and GPS, and video of street cameras.

    infrared -> spots -+- pose, GPS -> located -+
                                                +- within 20 ms, same cell -> ticks -> survivors
    video ---> spots ---------------------------+

A UAV's frame is paired with its own pose and position, then with the frames of all cameras that look into the same
cell of the ground within the bound. Frames of a tick that were paired give rays, rays that meet give places
(`vision.places`); a cell keeps the survivors that are inside it, so that no border counts one twice.
Every stage keeps what found no partner, and a tick counts it: infrared frames without pose, position or video, and
video that no infrared frame came near to whose place is known. The truth is not among the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.pipelines.constant import constant
from ringcast.spark.pipelines.fixing import TICK, fixed
from ringcast.spark.pipelines.pairing import pair, pair_both
from ringcast.spark.pipelines.sight import sight
from ringcast.spark.pipelines.times import instant
from ringcast.spark.vision.places import Gate
from ringcast.spark.vision.spots import BRIGHT, WARM_CENTIKELVIN


@dataclass(frozen=True)
class Fusion:
    """`bound_us` is how far frames may be apart. A cell is the piece of ground that is fused on its own."""

    bound_us: int = 20_000
    pose_bound_us: int = 20_000
    gps_bound_us: int = 60_000
    tick_us: int = 100_000
    cell_m: float = 400.0
    reach_m: float = 80.0
    gate: Gate = field(default_factory=Gate)


def locate(frames: DataFrame, pose: DataFrame, gps: DataFrame, sensors: DataFrame, how: Fusion) -> DataFrame:
    """UAV frames (`sight`), each with its poses and positions near in time and its lens, once for each `cell` of the
    ground that it may see; `home` is the one below it. One without a pose or a position is nowhere, and at home there.
    """
    lens = constant(sensors, frames).select("tag", F.struct("width", "height", "field_of_view").alias("lens"))
    uav = F.split("tag", "/")[1].alias("uav")
    posed = pair(
        frames.join(F.broadcast(lens), "tag").select("*", uav),
        pose.select("event_time", "event_ns", uav, *_POSE),
        ["uav"], how.pose_bound_us, "pose",
    )  # fmt: skip
    placed = pair(posed, gps.select("event_time", "event_ns", uav, *_GPS), ["uav"], how.gps_bound_us, "gps")
    x, y = F.col("gps_x"), F.col("gps_y")
    nowhere = F.array(F.lit(_NOWHERE))
    known = F.when(F.col("pose_ns").isNotNull(), _cells(x, y, how.reach_m, how))
    near = placed.withColumn("cell", F.explode(F.coalesce(known, nowhere)))
    below = F.coalesce(_cells(x, y, 0.0, how)[0], F.lit(_NOWHERE))
    return near.withColumn("home", F.col("cell").isin(_NOWHERE) | (F.col("cell") == below))


def meetings(located: DataFrame, video: DataFrame, sensors: DataFrame, how: Fusion) -> DataFrame:
    """Located frames with the video frames of the same instant and cell, and what has no partner on either side: the
    fusion join."""
    return pair_both(located, aimed(video, sensors, how), ["cell"], how.bound_us, "video")


def aimed(video: DataFrame, sensors: DataFrame, how: Fusion) -> DataFrame:
    """Video frames (`sight`) with their camera, once for each cell that it looks into; `home` is where it stands."""
    place = F.struct("x", "y", "z", "yaw", "pitch", "roll", "width", "height", "field_of_view")
    cells = _cells(F.col("x"), F.col("y"), how.reach_m, how)
    below = _cells(F.col("x"), F.col("y"), 0.0, how)[0].alias("_below")
    cameras = sensors.where("x is not null").select("tag", place.alias("camera"), F.explode(cells).alias("cell"), below)
    known = cameras.select("tag", "camera", "cell", (F.col("cell") == F.col("_below")).alias("home"))
    return video.join(F.broadcast(constant(known, video)), "tag")


def ticks(pairs: DataFrame, how: Fusion) -> DataFrame:
    """One row per tick and cell: `survivors`, and how many frames there were and lacked a partner (`COUNTS`)."""
    member = F.struct(*(F.col(name) for name in TICK.fieldNames()))
    span = F.window("event_time", f"{how.tick_us} microseconds")
    # Sorted, so that the order in which rows came cannot change a result.
    grouped = pairs.groupBy(span.alias("_tick"), "cell").agg(F.sort_array(F.collect_list(member)).alias("_members"))
    found = grouped.withColumn("_found", fixed(F.col("_members"), F.col("cell"), how.cell_m, how.gate))
    middle = F.unix_micros("_tick.start") * 1000 + how.tick_us * 500
    return found.select(F.col("_tick.start").alias("event_time"), middle.alias("event_ns"), "cell", "_found.*")


def fuse(
    infrared: DataFrame,
    pose: DataFrame,
    gps: DataFrame,
    video: DataFrame,
    sensors: DataFrame,
    how: Fusion | None = None,
) -> DataFrame:
    """Silver rows of the four families to ticks. Streams are `watched`."""
    how = how or Fusion()
    warm = sight(infrared, WARM_CENTIKELVIN)
    located = locate(warm, pose, gps, sensors, how)
    return ticks(meetings(located, sight(video, BRIGHT), sensors, how), how)


def survivors(found: DataFrame) -> DataFrame:
    """The columns of `gold.detections` but `run_id`, one row per survivor and tick."""
    each = found.select("event_time", "event_ns", F.explode("survivors").alias("_one"))
    return each.select(instant(F.col("event_ns")).alias("event_time"), "event_ns", "_one.*")


COUNTS = ("frames", "without_pose", "without_gps", "without_video", "unmatched_video")


def tally(found: DataFrame) -> DataFrame:
    """How many infrared frames were fused, how many frames found no partner, and in how many `ticks`, in one row."""
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in COUNTS)
    return found.agg(*sums, F.count(F.when(F.col("frames") > 0, 1)).alias("ticks"))


def _cells(x: Column, y: Column, reach_m: float, how: Fusion) -> Column:
    """Names of the cells within reach. The first one's middle is the origin, where most missions are."""

    def span(along: Column) -> Column:
        ends = (F.floor((along + way * reach_m) / how.cell_m + 0.5) for way in (-1, 1))
        return F.sequence(*ends)

    return F.flatten(F.transform(span(x), lambda i: F.transform(span(y), lambda j: F.concat_ws(":", i, j))))


_NOWHERE = "nowhere"
_POSE = ("yaw", "pitch", "roll", "yaw_rate", "pitch_rate", "roll_rate")
_GPS = ("x", "y", "z", "vx", "vy", "vz")
