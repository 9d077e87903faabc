"""From messages to results through the lake: counted, followed back, and the same however often it is done."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bronze_rows import EPOCH_NS, frame, message
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ringcast.rescue.tables import GPS
from ringcast.spark import jobs
from ringcast.spark.catalog import find
from ringcast.spark.declaration import NoSuchPipeline, NothingToDo
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run, ancestry, code_version, lineage
from ringcast.spark.quality import Expectation, ExpectationFailed
from ringcast.spark.settling import Place, settle
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.upkeep import CLOCKS, QUALITY, QUARANTINE, RUNS

MS = 1_000_000
HOUR = 3600 * 1000
FIX = {"x": 1.0, "y": 2.5, "z": 3.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def gps(seq: int, at_ms: int, **more: Any) -> dict[str, Any]:
    return message("uav/1/gps", seq, at_ms * MS, **{"payload": msgspec.json.encode(FIX), **more})


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "lake")


def counts_of(lake: Lake, table: str) -> dict[str, int]:
    rows = lake.read(QUALITY).where(f"table = '{table}'").collect()
    return {row.expectation: row.rows for row in rows}


def test_from_a_recording_to_results_with_bad_rows_aside(lake: Lake, spark: SparkSession) -> None:
    rows = [gps(seq, seq * 10, lost=2 if seq == 3 else 0) for seq in (0, 1, 3, 4)]
    rows += [gps(4, 40, received_ns=EPOCH_NS + 99 * MS), gps(5, 50, payload=b"{")]
    for _ in range(2):
        done = jobs.run("ingest", lake, source=frame(spark, rows))
    assert done.outputs == {"bronze.messages": 0}, "the second time nothing is new"
    assert lake.read(MESSAGES).count() == 6
    for _ in range(2):
        done = jobs.run("refine", lake, options={"families": ["gps"]})
        assert done.outputs == {"silver.gps": 4, "quarantine": 1}
        assert lake.read(GPS.table).count() == 4
        aside = lake.read(QUARANTINE).collect()
        assert [(row.table, row.seq, bytes(row.payload)) for row in aside] == [("silver.gps", 5, b"{")]
        assert "decodes" in aside[0].reason
        assert "truncated" in aside[0].reason
    counts = counts_of(lake, "silver.gps")
    assert (counts["rows"], counts["decodes"], counts["quarantined"]) == (5, 1, 1)
    assert (counts["duplicated"], counts["lost"]) == (1, 2)
    served = jobs.run("qos", lake)
    assert served.outputs == {"gold.qos": 1}
    assert {row.run_id for row in lake.read(find("gold.qos")).collect()} == {served.id}

    made = lineage(lake, "silver.gps").collect()
    assert [row.state for row in made] == ["done", "done"]
    assert made[0].code_version == code_version()
    assert made[0].rows == 4
    assert ancestry(lake, "gold.qos") == ["gold.qos", "bronze.messages", "clocks"]


def test_a_backfill_replaces_its_hours_and_no_others(lake: Lake, spark: SparkSession) -> None:
    jobs.run("ingest", lake, source=frame(spark, [gps(0, 0), gps(1, HOUR), gps(2, 2 * HOUR, payload=b"{")]))
    jobs.run("refine", lake, options={"families": ["gps"]})
    # The clock of the node turns out to be an hour ahead of the base: what was at one is at noon.
    lake.replace(CLOCKS, spark.createDataFrame([("n", 0, HOUR * MS, 0.0, 0)], CLOCKS.schema))
    said: list[str] = []
    for _ in range(2):
        half = NOON + dt.timedelta(minutes=30)
        jobs.run("refine", lake, NOON, half, options={"families": ["gps"]}, say=said.append)
        held = sorted((row.seq, row.event_time.hour) for row in lake.read(GPS.table).collect())
        assert held == [(1, 12), (1, 13)], "noon was done again, with the clock that is known now; one o'clock was not"
        assert lake.read(QUARANTINE).count() == 1
    assert said == ["refining gps", "writing silver.gps"] * 2
    assert lake.read(RUNS).count() == 4


def test_ingest_of_some_hours_leaves_other_tags_of_these_hours(lake: Lake, spark: SparkSession) -> None:
    jobs.run("ingest", lake, source=frame(spark, [gps(0, 0), message("uav/2/gps", 0, 0)]))
    later = NOON + dt.timedelta(hours=1)
    jobs.run("ingest", lake, NOON, later, source=frame(spark, [gps(0, 0), gps(1, 5), gps(2, HOUR)]))
    held = sorted((row.tag, row.seq) for row in lake.read(MESSAGES).collect())
    assert held == [("uav/1/gps", 0), ("uav/1/gps", 1), ("uav/2/gps", 0)]


def test_a_backfill_of_qos_sees_what_other_clocks_stamped_into_other_hours(lake: Lake, spark: SparkSession) -> None:
    # Fifty minutes ahead: what happened at half past twelve lies in the hour of one o'clock.
    ahead = 50 * 60_000
    stamped = [
        message(
            "uav/1/gps", seq, (30 * 60_000 + seq * 100 + ahead) * MS, received_ns=EPOCH_NS + (30 * 60_000 + 600) * MS
        )
        for seq in range(3)
    ]
    jobs.run("ingest", lake, source=frame(spark, stamped))
    lake.replace(CLOCKS, spark.createDataFrame([("n", 0, ahead * MS, 0.0, 0)], CLOCKS.schema))
    jobs.run("qos", lake)
    whole = [(row.event_time, row.received) for row in lake.read(find("gold.qos")).collect()]
    assert whole == [(dt.datetime(2026, 1, 1, 12, 30), 3)]
    jobs.run("qos", lake, NOON, NOON + dt.timedelta(minutes=5))
    assert [(row.event_time, row.received) for row in lake.read(find("gold.qos")).collect()] == whole


def test_a_job_beside_a_stream_is_done_again_and_loses_nothing(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.run("ingest", lake, source=frame(spark, [gps(0, 0)]))
    jobs.run("refine", lake, options={"families": ["gps"]})
    original, intruded = Lake._stage, []

    def intrude(self: Lake, table: Any, rows: Any, kind: str) -> Any:
        staged = original(self, table, rows, kind)
        if table.name == GPS.table.name and not intruded:
            intruded.append(True)
            # A stream writes a message to bronze and, refined, to silver.
            jobs.run("ingest", lake, source=frame(spark, [gps(1, 10)]))
            late = lake.read(GPS.table).withColumn("seq", F.lit(1).cast("bigint"))
            lake.append(GPS.table, late, batch=("stream", 0))
        return staged

    monkeypatch.setattr(Lake, "_stage", intrude)
    said: list[str] = []
    jobs.run("refine", lake, options={"families": ["gps"]}, say=said.append)
    assert sorted(row.seq for row in lake.read(GPS.table).collect()) == [0, 1]
    assert "somebody else wrote meanwhile; once more" in said


def test_an_expectation_that_fails_stops_the_run_before_anything_is_written(lake: Lake, spark: SparkSession) -> None:
    expectations = [Expectation("numbers are small", "seq < 2", "fail"), Expectation("all is well", "true", "keep")]
    rows = frame(spark, [gps(seq, seq) for seq in range(5)])
    with pytest.raises(ExpectationFailed) as caught, Run(lake, "test") as run:
        settle(lake, MESSAGES, rows, expectations, run, Place())
    assert (caught.value.table, caught.value.rows) == ("bronze.messages", 3)
    assert lake.read(MESSAGES).count() == 0
    row = lake.read(RUNS).first()
    assert row is not None
    assert row.state == "failed"
    assert "numbers are small" in row.error


def test_null_does_not_meet_an_expectation_and_keep_only_counts(lake: Lake, spark: SparkSession) -> None:
    expectations = [
        Expectation("has a schema", "schema_id = 'a'", "keep"),
        Expectation("is even", "seq % 2 = 0", "quarantine"),
    ]
    rows = frame(spark, [gps(seq, seq) for seq in range(5)])
    with Run(lake, "test") as run:
        counts = settle(lake, MESSAGES, rows, expectations, run, Place(batch=("q", 0)))
        settle(lake, MESSAGES, rows, expectations, run, Place(batch=("q", 0)))
    assert counts == {"rows": 5, "has a schema": 5, "is even": 2, "quarantined": 2, "lost": 0}
    assert lake.read(MESSAGES).count() == 3
    assert lake.read(QUARANTINE).count() == 2, "a batch that is replayed is not put aside twice"


def test_rows_of_another_schema_are_put_aside_whole(lake: Lake, spark: SparkSession) -> None:
    rows = frame(spark, [gps(seq, seq) for seq in range(3)])
    with Run(lake, "test") as run:
        settle(lake, MESSAGES, rows, (), run, Place())
        changed = rows.withColumn("seq", F.col("seq").cast("string")).drop("codec")
        counts = settle(lake, MESSAGES, changed, (), run, Place())
    assert counts["quarantined"] == 3
    assert lake.read(MESSAGES).count() == 3, "what the table holds stays"
    reasons = {row.reason for row in lake.read(QUARANTINE).collect()}
    assert len(reasons) == 1
    assert "codec is missing" in min(reasons)
    assert "seq is string" in min(reasons)


def test_what_is_missing_is_said(lake: Lake) -> None:
    with pytest.raises(NoSuchPipeline, match="ingest"):
        jobs.run("brew", lake)
    with pytest.raises(jobs.NoSuchOption, match="window_s"):
        jobs.run("qos", lake, options={"windows": 3})
    with pytest.raises(NothingToDo, match="--input"):
        jobs.run("ingest", lake)
    with pytest.raises(NothingToDo, match="sensors"):
        jobs.run("fire", lake)
    with pytest.raises(NothingToDo, match="results"):
        jobs.run("train", lake)
