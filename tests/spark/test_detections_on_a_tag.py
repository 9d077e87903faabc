"""What fusion finds comes out on a tag, once, and a tag that is not made for it is refused before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ringcast
from ringcast.errors import TagConflict
from ringcast.rescue import Mission, Settings, bronze_rows
from ringcast.rescue.tables import DETECTIONS, SENSORS
from ringcast.rescue.trials import declared, store
from ringcast.spark import jobs
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.streams import Streams
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.upkeep import CLOCKS, QUALITY
from ringcast.spark.tags.outlet import Outlet

TAG = "sar/detections"
MISSION = Mission(Settings(seconds=0.5, uavs=1, cameras=2))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    found = Lake(spark, tmp_path / "lake")
    store(found, MISSION)
    return found


def ring_rows(session: ringcast.Session) -> int:
    return session.tag(TAG).history().latest().seq + 1


def test_a_job_publishes_the_rows_it_writes(lake: Lake, daemon: Any, session: ringcast.Session) -> None:
    jobs.run("fuse", lake, publish=Outlet(TAG, daemon.socket_path))
    messages = list(MISSION.messages())
    infrared, video = ([m.at_ns for m in messages if m.tag.endswith(kind)] for kind in ("/ir", "/video"))
    alone = [at for at in video if all(abs(at - other) > 20_000_000 for other in infrared)]
    counted = {row.expectation: row.rows for row in lake.read(QUALITY).where("table = 'gold.detections'").collect()}
    assert counted["unmatched_video"] == len(alone) > 0
    kept = lake.read(DETECTIONS).collect()
    assert len(kept) > 5
    assert ring_rows(session) == len(kept)
    with session.subscribe(TAG, start="earliest") as subscriber:
        came = [subscriber.recv(timeout=30) for _ in kept]
    assert sorted(
        (m.event_ns, *(m.data[name] for name in ("x", "y", "confidence", "cameras"))) for m in came
    ) == sorted((row.event_ns, row.x, row.y, row.confidence, row.cameras) for row in kept)
    assert {m.data["run_id"] for m in came} == {kept[0].run_id}


def test_a_stream_publishes_each_batch_once_even_if_spark_runs_it_again(
    spark: SparkSession, tmp_path: Path, daemon: Any, session: ringcast.Session
) -> None:
    lake = Lake(spark, tmp_path / "lake")
    # A row a minute later ends every window and every wait of the stream.
    rows = list(bronze_rows(MISSION))
    later = list(bronze_rows(Mission(Settings(seconds=0.5, uavs=1, cameras=2, seed=8, begin_ns=_LATER))))
    for at, some in enumerate((rows, later)):
        declared(spark, some, MESSAGES).coalesce(1).write.parquet(str(tmp_path / "in" / str(at)))
    sensors = declared(spark, MISSION.calibration(), SENSORS).cache()
    clocks = declared(spark, [], CLOCKS)
    outlet = Outlet(TAG, daemon.socket_path)
    before = spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled")
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    counts = []
    try:
        for _ in range(2):
            messages = (
                spark.readStream.schema(MESSAGES.schema).option("maxFilesPerTrigger", 1)
                .parquet(str(tmp_path / "in" / "*"))
            )  # fmt: skip
            with Run(lake, "search") as run:
                streams = Streams(lake, run, tmp_path / "checkpoints", every_s=None)
                streams.start("fuse", messages, {"clocks": clocks, "sensors": sensors}, outlet)
                streams.wait()
            counts.append(ring_rows(session))
            # As if the driver had died between our publishing and Spark's own commit of the last batch.
            done = max((tmp_path / "checkpoints" / "fuse" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
            done.unlink()
            done.with_name(f".{done.name}.crc").unlink(missing_ok=True)
    finally:
        spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", str(before))
    assert counts[0] == counts[1] == lake.read(DETECTIONS).count() > 5


def test_a_tag_with_another_codec_is_refused_before_anything_is_fused(
    lake: Lake, daemon: Any, session: ringcast.Session
) -> None:
    session.tag(TAG, codec="numpy")
    with pytest.raises(TagConflict, match=r"codec='numpy', not 'json'"):
        jobs.run("fuse", lake, publish=Outlet(TAG, daemon.socket_path))
    assert lake.read(DETECTIONS).count() == 0
    with pytest.raises(TagConflict):
        Outlet(TAG, daemon.socket_path).check()


_LATER = MISSION.settings.begin_ns + 60_000_000_000
