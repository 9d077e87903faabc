"""Fusion finds who is there and nobody else, when streams are in time; what is out of time is missed, and counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bronze_rows import ending, frame, plain
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.lab.rescue import Mission, Settings, bronze_rows, clock_rows, truth_rows
from ringcast.spark.pipelines.fire import fire
from ringcast.spark.pipelines.fuse import Fusion, aimed, fuse, locate, meetings, survivors, tally, unmatched_video
from ringcast.spark.pipelines.pairing import pair
from ringcast.spark.pipelines.refine import refine
from ringcast.spark.pipelines.score import Score, matched, score
from ringcast.spark.pipelines.sight import sight
from ringcast.spark.pipelines.times import watched
from ringcast.spark.tables.silver import GPS, INFRARED, POSE, VIDEO
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import CLOCKS, SENSORS
from ringcast.spark.vision.spots import BRIGHT, WARM_CENTIKELVIN

MS = 1_000_000
SKEWED = {"uav0-camera": 50 * MS, "uav1-camera": 50 * MS}
FAMILIES = (INFRARED, POSE, GPS, VIDEO)


def table(spark: SparkSession, rows: list[dict[str, Any]], declared: Table) -> DataFrame:
    return spark.createDataFrame([tuple(row[c] for c in declared.columns) for row in rows], declared.schema)


def silver(spark: SparkSession, mission: Mission, translated: bool = True) -> list[DataFrame]:
    clocks = table(spark, clock_rows(mission) if translated else [], CLOCKS)
    messages = frame(spark, bronze_rows(mission)).cache()
    return [refine(messages, clocks, family).drop("rejected", "codec", "payload") for family in FAMILIES]


def result(spark: SparkSession, translated: bool = True, **settings: Any) -> tuple[Score, dict[str, int]]:
    mission = Mission(Settings(seconds=2.0, **settings))
    ticks = fuse(*silver(spark, mission, translated), table(spark, mission.calibration(), SENSORS)).cache()
    truth = spark.createDataFrame(truth_rows(mission))
    counts = tally(ticks).first()
    assert counts is not None
    return score(matched(survivors(ticks), truth)), counts.asDict()


def test_in_time_and_without_loss_everybody_is_found(spark: SparkSession) -> None:
    found, counts = result(spark, duplicates=0.1)
    assert found.found > 80
    assert found.recall >= 0.95
    assert found.precision >= 0.95
    assert found.error_m < 0.2
    assert counts == {"frames": 40, "without_pose": 0, "without_gps": 0, "without_video": 0, "ticks": 20}


def test_clocks_apart_cause_misses_and_false_alarms_and_translation_mends_it(spark: SparkSession) -> None:
    apart, counts = result(spark, translated=False, skew_ns=SKEWED)
    assert apart.recall < 0.9
    assert apart.false_alarms > 0
    assert counts["without_gps"] > 0
    mended, _ = result(spark, translated=True, skew_ns=SKEWED)
    assert mended.recall >= 0.95
    assert mended.precision >= 0.95


def test_lost_packets_cause_misses(spark: SparkSession) -> None:
    found, counts = result(spark, loss=0.03)
    assert found.recall < 0.92
    assert counts["frames"] < 40, "a frame is many packets"


def test_a_batch_and_a_stream_fuse_alike(spark: SparkSession, tmp_path: Path) -> None:
    mission = Mission(Settings(seconds=1.0, loss=0.03, uavs=2, cameras=2))
    sensors = table(spark, mission.calibration(), SENSORS).cache()
    inputs = [part.cache() for part in silver(spark, mission)]
    how = Fusion()
    batch = fuse(*inputs, sensors, how).collect()
    directories = [tmp_path / family.name for family in FAMILIES]
    for part, directory in zip(inputs, directories, strict=True):
        middle = part.agg(F.expr("percentile(event_ns, 0.5)")).first()[0]  # type: ignore[index]
        # A row far later ends every window and every wait of the stream.
        closing = part.limit(1).withColumns(
            {
                "event_time": F.col("event_time") + F.expr("INTERVAL 60 SECONDS"),
                "event_ns": F.col("event_ns") + 60_000 * MS,
            }
        )
        for at, piece in enumerate(
            (part.where(F.col("event_ns") < middle), part.where(F.col("event_ns") >= middle), closing)
        ):
            piece.coalesce(1).write.parquet(str(directory / f"{at}"))
    streams = [
        watched(spark.readStream.schema(part.schema).option("maxFilesPerTrigger", 1).parquet(str(directory / "*")))
        for part, directory in zip(inputs, directories, strict=True)
    ]
    ending(spark)
    query = (
        fuse(*streams, sensors, how).writeStream.format("memory").queryName("fused").outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    begin = mission.settings.begin_ns
    stream = spark.table("fused").where(F.col("event_ns") < begin + 30_000 * MS).collect()
    assert len(batch) >= 8
    assert sum(len(row.survivors) for row in batch) > 10
    assert plain(batch) == plain(stream)


def test_the_join_equals_brute_force(spark: SparkSession) -> None:
    left = spark.range(300).selectExpr("id as l", "id * 7919 % 5003 * 300 as us", "cast(id % 3 as string) as rig")
    right = spark.range(300).selectExpr("id as r", "id * 104729 % 4999 * 300 as us", "cast(id % 3 as string) as rig")
    timed: Callable[[DataFrame], DataFrame] = lambda rows: rows.withColumns(  # noqa: E731
        {"event_time": F.timestamp_micros("us"), "event_ns": F.col("us") * 1000}
    ).drop("us")
    found = pair(timed(left), timed(right), ["rig"], 20_000, "other").collect()
    ours, theirs = left.collect(), right.collect()
    brute = [(a.l, b.r) for a in ours for b in theirs if a.rig == b.rig and abs(a.us - b.us) <= 20_000]
    assert sorted((row.l, row.other_r) for row in found if row.other_r is not None) == sorted(brute)
    alone = {row.l for row in ours} - {a for a, _ in brute}
    assert {row.l for row in found if row.other_r is None} == alone
    assert alone
    assert brute


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> tuple[Mission, DataFrame, list[DataFrame]]:
    """One UAV and one camera for a second: the mission, its sensors, its silver tables."""
    mission = Mission(Settings(seconds=1.0, cameras=1, uavs=1))
    parts = [part.coalesce(1).cache() for part in silver(spark, mission)]
    return mission, table(spark, mission.calibration(), SENSORS).cache(), parts


def test_video_without_infrared_is_counted(small: tuple[Mission, DataFrame, list[DataFrame]]) -> None:
    _, sensors, (infrared, pose, gps, video) = small
    how = Fusion()
    located = locate(sight(infrared, WARM_CENTIKELVIN), pose, gps, sensors, how).cache()
    seen = sight(video, BRIGHT).cache()
    partners = meetings(located, seen, sensors, how).select("video_seq").distinct().count()
    alone = unmatched_video(located, seen, sensors, how).count()
    assert partners == 10
    assert alone == 25 - partners
    assert aimed(seen, sensors, how).count() == 25, "a square in the middle of a cell is in that cell only"


def test_fire_reads_the_same_infrared(small: tuple[Mission, DataFrame, list[DataFrame]]) -> None:
    mission, sensors, (infrared, pose, gps, _) = small
    found = fire(infrared, pose, gps, sensors).collect()
    truth = next(thing for thing in mission.world.things if thing.kind == "fire")
    assert len(found) > 5
    for row in found:
        assert (row.x, row.y) == pytest.approx(tuple(truth.home[:2]), abs=1.5)
        assert row.excess_k > 60
