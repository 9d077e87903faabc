"""Commits are seen whole or not at all, once, and in the schema that was declared."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.record.delta import Delta, TableChanged
from ringcast.spark.lake import Lake, LakeError
from ringcast.spark.session import has_delta
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


def test_files_that_no_commit_names_do_not_exist_and_compaction_removes_them(lake: Lake, spark: SparkSession) -> None:
    for value in range(3):
        lake.append(TABLE, rows(spark, value))
    data = lake.location(TABLE) / "data"
    stray = data / "stray.parquet"
    stray.write_bytes(next(data.glob("*.parquet")).read_bytes())
    assert values(lake.read(TABLE)) == [0, 1, 2]
    done = lake.compact(TABLE, grace_s=3600)
    assert (done.files, done.removed) == (1, 3)
    assert len(list(data.glob("*.parquet"))) == 4, "a reader may still have the old ones open"
    lake.compact(TABLE, grace_s=0)
    assert list(data.glob("*.parquet")) == []
    assert len(lake.state(TABLE).files) == 1
    assert values(lake.read(TABLE)) == [0, 1, 2]


def test_older_versions_are_read(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    before = lake.state(TABLE).version
    lake.replace(TABLE, rows(spark, 2))
    assert values(lake.read(TABLE, at=before)) == [1]
    assert values(lake.read(TABLE)) == [2]


def test_columns_may_be_added(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    wider = Table(TABLE.name, "", join(TABLE.schema, optional(unit=STRING)), TABLE.partition)
    lake.append(wider, rows(spark, 2).withColumn("unit", F.lit("K")))
    assert sorted((r.value, r.unit) for r in lake.read(wider).collect()) == [(1, None), (2, "K")]


def test_code_that_is_older_than_a_table_reads_its_history_and_goes_on(lake: Lake, spark: SparkSession) -> None:
    wider = Table(TABLE.name, "", join(TABLE.schema, optional(unit=STRING)), TABLE.partition)
    lake.append(wider, rows(spark, 1).withColumn("unit", F.lit("K")))
    lake.append(TABLE, rows(spark, 2))
    assert values(lake.read(TABLE)) == [1, 2]
    assert sorted((r.value, r.unit) for r in lake.read(wider).collect()) == [(1, "K"), (2, None)]


def test_another_type_is_refused_until_a_version_is_declared(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    other = Table(TABLE.name, "", columns(event_time=TIME, name=STRING, value=DOUBLE), TABLE.partition)
    half = rows(spark, 3).withColumn("value", F.col("value") / 2)
    for attempt in (lambda: lake.append(other, half), lambda: lake.read(other)):
        with pytest.raises(LakeError, match=r"value is bigint.*version=2"):
            attempt()
    second = replace(other, version=2)
    lake.append(second, half)
    assert [r.value for r in lake.read(second).collect()] == [1.5]
    assert values(lake.read(TABLE)) == [1], "the one before stays beside it"


def test_a_null_where_none_may_be_is_refused(lake: Lake, spark: SparkSession) -> None:
    bad = rows(spark, 1).withColumn("name", F.lit(None).cast("string"))
    with pytest.raises(Exception, match="null in one of"):
        lake.append(TABLE, bad)
    assert values(lake.read(TABLE)) == []


@pytest.fixture
def intruding(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has somebody else commit once, right before the next commit."""

    def intrude(action: Callable[[], object]) -> None:
        original = Delta.commit

        def commit(delta: Delta, *args: Any, **named: Any) -> Any:
            monkeypatch.setattr(Delta, "commit", original)
            action()
            return original(delta, *args, **named)

        monkeypatch.setattr(Delta, "commit", commit)

    return intrude


Intruding = Callable[[Callable[[], object]], None]


def test_a_backfill_does_not_delete_what_a_stream_added_meanwhile(
    lake: Lake, spark: SparkSession, intruding: Intruding
) -> None:
    lake.append(TABLE, rows(spark, 1))
    intruding(lambda: lake.append(TABLE, rows(spark, 2), batch=("stream", 0)))
    with pytest.raises(TableChanged, match="compute it again"):
        lake.replace(TABLE, rows(spark, 3), partitions=["2026-01-01T12"])
    assert values(lake.read(TABLE)) == [1, 2]
    intruding(lambda: lake.append(TABLE, rows(spark, 7, hour=1)))
    lake.replace(TABLE, rows(spark, 3), partitions=["2026-01-01T12"])
    assert values(lake.read(TABLE)) == [3, 7], "another hour is no reason to stop"
    data = lake.location(TABLE) / "data"
    assert len(list(data.glob("*.parquet"))) == 4, "what was not committed is not left behind"


def test_what_a_backfill_brought_a_stream_does_not_bring_again(
    lake: Lake, spark: SparkSession, intruding: Intruding
) -> None:
    lake.append(TABLE, rows(spark, 1), batch=("stream", 0), key=["value"])
    lake.replace(TABLE, rows(spark, 1, 2), partitions=["2026-01-01T12"])
    late = lake.append(TABLE, rows(spark, 2, 3), batch=("stream", 1), key=["value"])
    assert (late.rows, late.dropped) == (1, 1)
    few = pa.table({"event_time": [NOON, NOON], "name": ["a", "a"], "value": [2, 4]})
    small = lake.add_arrow(TABLE, few, ["2026-01-01T12"] * 2, batch=("stream", 2), key=["value"])
    assert (small.rows, small.dropped) == (1, 1)
    assert values(lake.read(TABLE)) == [1, 2, 3, 4]
    # In the moment between a look at the table and the commit.
    intruding(lambda: lake.append_new(TABLE, rows(spark, 5), ["value"]))
    assert lake.append(TABLE, rows(spark, 5, 6), batch=("stream", 3), key=["value"]).dropped == 1
    assert values(lake.read(TABLE)) == [1, 2, 3, 4, 5, 6]


def test_two_who_add_what_is_new_at_once_add_it_once(lake: Lake, spark: SparkSession, intruding: Intruding) -> None:
    lake.append(TABLE, rows(spark, 1))
    intruding(lambda: lake.append_new(TABLE, rows(spark, 1, 2, 3), ["value"]))
    assert lake.append_new(TABLE, rows(spark, 2, 3, 4), ["value"]).rows == 1
    assert values(lake.read(TABLE)) == [1, 2, 3, 4]


def test_a_batch_that_two_commit_at_once_is_there_once(lake: Lake, spark: SparkSession, intruding: Intruding) -> None:
    intruding(lambda: lake.append(TABLE, rows(spark, 1), batch=("q", 0)))
    assert not lake.append(TABLE, rows(spark, 1), batch=("q", 0)).new
    assert values(lake.read(TABLE)) == [1]


def test_names_with_brackets_and_asterisks_are_names(spark: SparkSession, tmp_path: Path) -> None:
    by_name = Table("gold.odd", "", TABLE.schema, "name")
    lake = Lake(spark, tmp_path / "lake[1]*")
    odd = [(NOON, name, at) for at, name in enumerate(("a*", "ab", "{a,b}", "[ab]", "a?"))]
    lake.append(by_name, spark.createDataFrame(odd, TABLE.schema))
    assert [r.value for r in lake.read(by_name, ["a*"]).collect()] == [0]
    assert values(lake.read(by_name)) == [0, 1, 2, 3, 4]
    lake.replace(by_name, rows(spark, 9).withColumn("name", F.lit("[ab]")), partitions=["[ab]"])
    assert values(lake.read(by_name)) == [0, 1, 2, 4, 9]


def test_files_are_on_disk_before_the_commit_that_names_them(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    committed: list[list[str]] = []
    sync, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), sync(fd)))
    monkeypatch.setattr(
        os, "link", lambda draft, commit: (committed.append([*synced, str(draft)]), link(draft, commit))
    )
    lake.append(TABLE, rows(spark, 1))
    lake.append(TABLE, rows(spark, 2))
    (file,) = lake.state(TABLE).files.keys() - lake.state(TABLE, 0).files.keys()
    *before, draft = committed[0]
    assert {str(lake.location(TABLE) / file), draft} <= set(before), "the rows, and what the commit says of them"


def test_others_read_the_same_rows(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1, 2))
    lake.append(TABLE, rows(spark, 3, hour=1))
    found = DeltaTable(str(lake.location(TABLE))).to_pyarrow_table()
    assert found.column_names == [*TABLE.columns, "hour"]
    ours = sorted((r.event_time.timestamp(), r.value) for r in lake.read(TABLE).collect())
    theirs = zip(found["event_time"].to_pylist(), found["value"].to_pylist(), strict=True)
    assert sorted((at.timestamp(), value) for at, value in theirs) == ours
    assert set(found["hour"].to_pylist()) == {"2026-01-01T12", "2026-01-01T13"}


def test_a_spark_with_deltas_jar_reads_by_it(lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not has_delta(spark)
    equipped = {"spark.sql.extensions": "a.B,io.delta.sql.DeltaSparkSessionExtension"}
    assert has_delta(cast(SparkSession, SimpleNamespace(conf=equipped)))
    lake.append(TABLE, rows(spark, 1))
    assert values(lake.read(TABLE)) == [1]
    monkeypatch.setattr("ringcast.spark.lake.has_delta", lambda _: True)
    with pytest.raises(Py4JJavaError, match="data source: delta"):  # there is no such jar here, as Spark says
        lake.read(TABLE)


def test_what_only_deltas_own_reader_knows_is_refused(lake: Lake, spark: SparkSession) -> None:
    lake.append(TABLE, rows(spark, 1))
    table = DeltaTable(str(lake.location(TABLE)))
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(LakeError, match="deletionVectors"):
        lake.read(TABLE)
