"""Streams write what jobs write, once, and count what they dropped."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bronze_rows import clocks, ending, frame, message, plain
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.rescue import Mission, Settings, bronze_rows
from ringcast.rescue.tables import DETECTIONS, FIRES, GPS, INFRARED, POSE, SENSORS, VIDEO
from ringcast.rescue.trials import declared
from ringcast.spark import declaration, jobs
from ringcast.spark.declaration import find
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.streams import Streams
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.gold import QOS
from ringcast.spark.tables.upkeep import QUALITY, QUARANTINE

MS = 1_000_000
FIX = msgspec.json.encode({"x": 1.0, "y": 2.5, "z": 3.0, "vx": 0.0, "vy": 0.0, "vz": 0.0})


def gps(seq: int, at_ms: int, **more: Any) -> dict[str, Any]:
    return message("uav/1/gps", seq, at_ms * MS, **{"payload": FIX, **more})


def arriving(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.readStream.schema(MESSAGES.schema).option("maxFilesPerTrigger", 1).parquet(str(directory / "*"))


def test_streams_and_jobs_fill_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    first = [gps(seq, seq * 100) for seq in range(12)]
    second = [gps(3, 300), gps(12, 1200, payload=b"{")]
    closing, after = [gps(100, 60_000)], [gps(101, 61_000)]
    behind = [gps(13, 1300)]  # two batches after the one that moved the watermark, which is when Spark minds
    for at, rows in enumerate((first, second, closing, after, behind)):
        frame(spark, rows).coalesce(1).write.parquet(str(tmp_path / "in" / str(at)))
    table = clocks(spark).cache()
    ending(spark)
    lake = Lake(spark, tmp_path / "streamed")
    for _ in range(2):  # a second start finds everything done
        with Run(lake, "streams") as run:
            streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
            came = arriving(spark, tmp_path / "in")
            streams.start("ingest", came)
            streams.start("refine", came, {"clocks": table}, options={"families": [GPS.name]})
            streams.start("qos", came, {"clocks": table})
            streams.wait()
    other = Lake(spark, tmp_path / "in-one-go")
    jobs.run("ingest", other, source=frame(spark, first + second[1:] + closing + after))
    jobs.run("refine", other, options={"families": ["gps"]})
    jobs.run("qos", other)
    assert lake.read(MESSAGES).count() == 17
    assert plain(lake.read(GPS.table).collect()) == plain(other.read(GPS.table).collect())
    assert lake.read(QUARANTINE).count() == 1
    windows = [each.read(QOS).where("event_time < '2026-01-01 12:00:30'").drop("run_id") for each in (lake, other)]
    assert plain(windows[0].collect()) == plain(windows[1].collect())
    assert windows[0].count() == 2
    seen = {(row.table, row.expectation): row.rows for row in lake.read(QUALITY).collect()}
    assert seen["refine-gps", "late"] == 1
    assert seen["refine-gps", "duplicated"] == 1


def test_a_batch_whose_commit_was_forgotten_is_not_written_twice(spark: SparkSession, tmp_path: Path) -> None:
    frame(spark, [gps(0, 0), gps(1, 1)]).coalesce(1).write.parquet(str(tmp_path / "in" / "0"))
    lake = Lake(spark, tmp_path / "lake")
    for _ in range(2):
        with Run(lake, "streams") as run:
            streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
            streams.start("ingest", arriving(spark, tmp_path / "in"))
            streams.wait()
        done = tmp_path / "checkpoints" / "ingest" / "commits" / "0"
        assert done.exists()
        done.unlink()  # as if the driver had died between our commit and Spark's
        done.with_name(".0.crc").unlink(missing_ok=True)
    assert lake.read(MESSAGES).count() == 2
    assert lake.state(MESSAGES).version == 0


def test_a_deleted_checkpoint_begins_anew_and_drops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    for at in range(2):  # each time another source, as a ring is after its publisher was started again
        frame(spark, [gps(at, at)]).coalesce(1).write.parquet(str(tmp_path / f"in{at}" / "0"))
        with Run(lake, "streams") as run:
            streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
            streams.start("ingest", arriving(spark, tmp_path / f"in{at}"))
            streams.wait()
        shutil.rmtree(tmp_path / "checkpoints")
    assert sorted(row.seq for row in lake.read(MESSAGES).collect()) == [0, 1]


def test_a_time_in_the_future_does_not_make_the_rest_late(spark: SparkSession, tmp_path: Path) -> None:
    good = [gps(seq, seq * 100) for seq in range(19)]
    year = 365 * 86_400_000
    future = {**gps(99, year), "received_ns": good[0]["received_ns"]}
    # Spark minds a watermark from the batch after the one that moved it.
    for at, rows in enumerate(([good[0], future], good[1:2], good[2:10], good[10:])):
        frame(spark, rows).coalesce(1).write.parquet(str(tmp_path / "in" / str(at)))
    lake = Lake(spark, tmp_path / "lake")
    with Run(lake, "streams") as run:
        streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
        streams.start("refine", arriving(spark, tmp_path / "in"), {"clocks": clocks(spark)},
                      options={"families": [GPS.name]})  # fmt: skip
        streams.wait()
    assert sorted(row.seq for row in lake.read(GPS.table).collect()) == list(range(19))
    (aside,) = lake.read(QUARANTINE).collect()
    assert aside.seq == 99
    assert "after it was received" in aside.reason


def test_an_hour_that_is_filled_in_beside_a_stream_has_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    lake, table = Lake(spark, tmp_path / "lake"), clocks(spark)
    parts = [[gps(0, 0), gps(1, 100)], [gps(2, 200), gps(3, 300)], [gps(9, 60_000)], [gps(10, 61_000)]]
    with Run(lake, "streams") as run:
        for some in (range(1), range(1, 4)):
            for at in some:
                frame(spark, parts[at]).coalesce(1).write.parquet(str(tmp_path / "in" / str(at)))
            if 1 in some:  # a job knows these two before the stream does
                jobs.run("ingest", lake, source=frame(spark, parts[1]))
                for name in ("refine", "qos"):
                    jobs.run(name, lake, options={"families": [GPS.name]} if name == "refine" else None)
            streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
            came = arriving(spark, tmp_path / "in")
            streams.start("ingest", came)
            streams.start("refine", came, {"clocks": table}, options={"families": [GPS.name]})
            streams.start("qos", came, {"clocks": table})
            streams.wait()
    for silver in (MESSAGES, GPS.table):
        assert sorted(row.seq for row in lake.read(silver).collect()) == [0, 1, 2, 3, 9, 10], silver.name
    assert lake.read(QOS).where("event_time < '2026-01-01 12:00:30'").count() == 1
    assert counted(lake, MESSAGES.name)["duplicated"] == 2
    assert counted(lake, QOS.name)["duplicated"] == 1


def test_a_second_row_of_the_same_key_is_left_out_and_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = find("qos")
    twice = replace(one, function=lambda messages, clocks: one.function(messages, clocks).withColumn(
        "_twice", F.explode(F.array(F.lit(1), F.lit(2)))).drop("_twice"))  # fmt: skip
    monkeypatch.setitem(declaration._declared, "qos", twice)
    rows = [gps(0, 0), gps(1, 100), gps(2, 60_000)]
    frame(spark, rows).coalesce(1).write.parquet(str(tmp_path / "in" / "0"))
    ending(spark)
    streamed, other = Lake(spark, tmp_path / "streamed"), Lake(spark, tmp_path / "in-one-go")
    with Run(streamed, "streams") as run:
        streams = Streams(streamed, run, tmp_path / "checkpoints", every_s=None)
        streams.start("qos", arriving(spark, tmp_path / "in"), {"clocks": clocks(spark)})
        streams.wait()
    other.append(MESSAGES, frame(spark, rows))
    jobs.run("qos", other)
    assert (streamed.read(QOS).count(), counted(streamed, QOS.name)["duplicated"]) == (1, 1)
    assert (other.read(QOS).count(), counted(other, QOS.name)["duplicated"]) == (2, 2)


@pytest.mark.parametrize("every_s", [1.0])
def test_a_running_query_stops_when_asked(spark: SparkSession, tmp_path: Path, every_s: float) -> None:
    frame(spark, [gps(0, 0)]).coalesce(1).write.parquet(str(tmp_path / "in" / "0"))
    lake = Lake(spark, tmp_path / "lake")
    with Run(lake, "streams") as run:
        streams = Streams(lake, run, tmp_path / "checkpoints", every_s=every_s)
        streams.start("ingest", arriving(spark, tmp_path / "in"))
        (query,) = streams.queries
        query.processAllAvailable()
        streams.stop()
    assert not query.isActive
    assert lake.read(MESSAGES).count() == 1


def split(rows: list[dict[str, Any]], begin_ns: int) -> list[list[dict[str, Any]]]:
    """By event time into two halves, with of every tag one more message, a minute later, that ends every wait."""
    middle = begin_ns + 300 * MS
    last = {row["tag"]: row for row in rows}.values()
    minute = dt.timedelta(minutes=1)
    closing = [
        {**row, "seq": row["seq"] + 1000, "event_ns": row["event_ns"] + 60_000 * MS,
         "event_time": row["event_time"] + minute, "received_ns": row["received_ns"] + 60_000 * MS, "lost": 0}
        for row in last
    ]  # fmt: skip
    return [[r for r in rows if r["event_ns"] < middle], [*(r for r in rows if r["event_ns"] >= middle), *closing]]


def counted(lake: Lake, table: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for row in lake.read(QUALITY).where(f"table = '{table}'").collect():
        total[row.expectation] += row.rows
    return dict(total)


def test_a_mission_fused_by_streams_and_by_jobs(spark: SparkSession, tmp_path: Path) -> None:
    mission = Mission(Settings(seconds=0.6, uavs=2, cameras=2, loss=0.03, duplicates=0.1))
    rows = list(bronze_rows(mission))
    for at, some in enumerate(split(rows, mission.settings.begin_ns)):
        frame(spark, some).coalesce(1).write.parquet(str(tmp_path / "in" / str(at)))
    sensors, nobody = declared(spark, mission.calibration(), SENSORS), clocks(spark)
    ending(spark)
    streamed, other = Lake(spark, tmp_path / "streamed"), Lake(spark, tmp_path / "in-one-go")
    with Run(streamed, "streams") as run:
        streams = Streams(streamed, run, tmp_path / "checkpoints", every_s=None)
        known = {"clocks": nobody, "sensors": sensors}
        streams.start("fuse", arriving(spark, tmp_path / "in"), known)
        # In one piece: nothing is shuffled then, and the result is the same.
        streams.start("fire", arriving(spark, tmp_path / "in").coalesce(1), known)
        streams.wait()
    other.append(MESSAGES, frame(spark, rows))
    other.replace(SENSORS, sensors)
    for name in ("refine", "fuse", "fire"):
        jobs.run(name, other)
    assert set(run.inputs) == {"tags uav/*/ir", "tags street/*/video", "tags uav/*/pose", "tags uav/*/gps", "clocks",
                               "sensors"}, "it read messages, and no table of refined ones"  # fmt: skip
    for table in (DETECTIONS, FIRES):
        found = [plain(lake.read(table).drop("run_id").collect()) for lake in (streamed, other)]
        assert found[0] == found[1]
        assert found[0]
    names = ("frames", "without_pose", "without_gps", "without_video", "unmatched_video", "ticks", "duplicated", "lost")
    counts = [{name: counted(lake, DETECTIONS.name)[name] for name in names} for lake in (streamed, other)]
    assert counts[0] == counts[1]
    assert counts[0]["unmatched_video"] > 0
    seen = counts[0]
    families = [counted(other, family.table.name) for family in (INFRARED, POSE, GPS, VIDEO)]
    for name in ("duplicated", "lost"):
        assert seen[name] == sum(family[name] for family in families) > 0
