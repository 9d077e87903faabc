"""Commits are seen whole or not at all, once, and in the schema that was declared."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.spark.lake import Lake, LakeError
from ringcast.spark.lake.log import Log
from ringcast.spark.tables.columns import DOUBLE, LONG, STRING, TIME, columns, join, optional
from ringcast.spark.tables.table import HOURLY, Table

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TABLE = Table("silver.test", "for tests", columns(event_time=TIME, name=STRING, value=LONG), HOURLY)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "lake")


def rows(spark: SparkSession, *values: int, hour: int = 0) -> DataFrame:
    at = NOON + dt.timedelta(hours=hour)
    return spark.createDataFrame([(at, "a", v) for v in values], TABLE.schema).coalesce(1)


def values(frame: DataFrame) -> list[int]:
    return sorted(row.value for row in frame.collect())


def test_commits_are_read_back_and_a_batch_counts_once(lake: Lake, spark: SparkSession) -> None:
    assert values(lake.read(TABLE)) == []
    assert lake.append(TABLE, rows(spark, 1, 2), batch=("q", 0)).rows == 2
    assert not lake.append(TABLE, rows(spark, 1, 2), batch=("q", 0)).new
    assert lake.append(TABLE, rows(spark, 3, hour=1), batch=("q", 1)).new
    assert values(lake.read(TABLE)) == [1, 2, 3]
    assert values(lake.read(TABLE, ["2026-01-01T13"])) == [3]
    assert lake.state(TABLE).rows == 3


def test_a_backfill_done_twice_is_done_once_and_refuses_strays(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    lake.append(TABLE, rows(spark, 9, hour=1))
    for _ in range(2):
        lake.replace(TABLE, rows(spark, 5, 6), partitions=["2026-01-01T12"])
        assert values(lake.read(TABLE)) == [5, 6, 9]
    with pytest.raises(LakeError, match="T13"):
        lake.replace(TABLE, rows(spark, 7, hour=1), partitions=["2026-01-01T12"])
    assert values(lake.read(TABLE)) == [5, 6, 9]
    lake.replace(TABLE, rows(spark), partitions=["2026-01-01T13"])
    assert values(lake.read(TABLE)) == [5, 6]


def test_files_without_a_manifest_do_not_exist_and_compaction_removes_them(lake: Lake, spark: SparkSession) -> None:
    for value in range(3):
        lake.append(TABLE, rows(spark, value))
    version = lake.path / TABLE.name / "v1"
    stray = version / "data" / "2026-01-01T12" / "stray.parquet"
    stray.write_bytes(next(version.glob("data/*/*.parquet")).read_bytes())
    assert values(lake.read(TABLE)) == [0, 1, 2]
    now = stray.stat().st_mtime + 10
    done = lake.compact(TABLE, grace_s=3600, now_s=now)
    assert (done.files, done.removed) == (1, 3)
    assert len(list(version.glob("data/*/*.parquet"))) == 5, "a reader may still have the old ones open"
    lake.compact(TABLE, grace_s=0, now_s=now)
    assert len(list(version.glob("data/*/*.parquet"))) == 1
    assert values(lake.read(TABLE)) == [0, 1, 2]


def test_rows_added_during_a_compaction_are_there_once(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in range(2):
        lake.append(TABLE, rows(spark, value))
    original = Lake._rows
    intruded = []

    def intrude(self: Lake, *args: object) -> DataFrame:
        if not intruded:
            intruded.append(True)
            lake.append(TABLE, rows(spark, 7))
        return original(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Lake, "_rows", intrude)
    lake.compact(TABLE)
    assert values(lake.read(TABLE)) == [0, 1, 7]


def test_columns_may_be_added_and_a_change_of_type_opens_a_version(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    wider = Table(TABLE.name, "", join(TABLE.schema, optional(unit=STRING)), TABLE.partition)
    lake.append(wider, rows(spark, 2).withColumn("unit", F.lit("K")))
    assert sorted((r.value, r.unit) for r in lake.read(wider).collect()) == [(1, None), (2, "K")]
    assert lake.versions(TABLE) == [1]
    other = Table(TABLE.name, "", columns(event_time=TIME, name=STRING, value=DOUBLE), TABLE.partition)
    with pytest.raises(LakeError, match="value is bigint"):
        lake.append(other, rows(spark, 3))
    lake.append(other, rows(spark, 3).withColumn("value", F.col("value") / 2))
    assert lake.versions(TABLE) == [1, 2]
    assert [r.value for r in lake.read(other).collect()] == [1.5]
    assert values(lake.read(other, version=1)) == [1, 2]


def test_a_null_where_none_may_be_is_refused(lake: Lake, spark: SparkSession) -> None:
    bad = rows(spark, 1).withColumn("name", F.lit(None).cast("string"))
    with pytest.raises(Exception, match="null in one of"):
        lake.append(TABLE, bad)
    assert values(lake.read(TABLE)) == []


def test_the_second_of_two_writers_sees_the_first(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append(TABLE, rows(spark, 1))
    original = Log.publish
    intruded = []

    def intrude(log: Log, manifest: object) -> bool:
        if not intruded:
            intruded.append(True)
            lake.append(TABLE, rows(spark, 2))
        return original(log, manifest)  # type: ignore[arg-type]

    monkeypatch.setattr(Log, "publish", intrude)
    lake.replace(TABLE, rows(spark, 3), partitions=["2026-01-01T12"])
    assert values(lake.read(TABLE)) == [3], "a replacement replaces what was there when it was committed"
