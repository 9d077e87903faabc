"""A lake of the older format, with manifests of its own, is converted once, and its rows are those that it had."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bronze_rows import frame, message
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ringcast.rescue.tables import TRUTH
from ringcast.rescue.trials import declared
from ringcast.spark.lake import Lake, LakeError
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.table import Table
from ringcast.spark.upgrade import upgrade

HOUR = 3_600_000_000_000


def as_before(lake: Lake, table: Table, version: int, added: list[list[int]], removed: int | None = None) -> None:
    """Lay a table's files out as the older code did, each of `added` a commit; the last one removes that file."""
    root = lake.path / table.name / f"v{version}"
    entries = []
    held = sorted(lake.state(table).files.items(), key=lambda item: str(item[1].partition))
    for at, (name, file) in enumerate(held):
        path = root / "data" / str(file.partition or "all") / f"{at}.parquet"
        path.parent.mkdir(parents=True)
        shutil.move(lake.location(table) / name, path)
        entries.append(
            {"path": str(path.relative_to(root)), "partition": file.partition or "all", "rows": 1, "size": 1}
        )
    shutil.rmtree(lake.location(table) / "_delta_log")
    (root / "manifests").mkdir()
    commits = [[entries[at] for at in some] for some in added]
    for number, some in enumerate(commits):
        last = number == len(commits) - 1
        commit = {
            "number": number, "added": some, "state": None if number else {"files": {e["path"]: e for e in some}},
            "removed": [entries[removed]["path"]] if last and removed is not None else [],
        }  # fmt: skip
        (root / "manifests" / f"{number:012d}.json").write_text(json.dumps(commit))


def test_an_older_lake_is_refused_then_converted_with_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    for seq in range(3):
        lake.append(MESSAGES, frame(spark, [message("a/b", seq, seq * HOUR)]).coalesce(1))
    # The second commit replaced the first's file, and a state stands in between.
    as_before(lake, MESSAGES, 1, [[0], [1, 2]], removed=0)
    with pytest.raises(LakeError, match="ringcast pipeline upgrade"):
        lake.read(MESSAGES)
    assert upgrade(lake.path) == {MESSAGES.name: 2}
    assert upgrade(lake.path) == {}
    assert sorted(row.seq for row in lake.read(MESSAGES).collect()) == [1, 2]
    assert [row.seq for row in lake.read(MESSAGES, ["2026-01-01T14"]).collect()] == [2]


def test_versions_before_the_newest_and_tables_that_no_pipeline_declares_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path / "lake")
    for version in (2, 1):
        lake.append(MESSAGES, frame(spark, [message("a/b", version, 0)]).coalesce(1))
        as_before(lake, MESSAGES, version, [[0]])
    truth = {"event_ns": 5, "survivor": "s", "x": 1.0, "y": 2.0, "z": 0.0, "uavs": 1, "cameras": 0}
    lake.append(TRUTH, declared(spark, [truth], TRUTH).coalesce(1))
    as_before(lake, TRUTH, 1, [[0]])
    assert upgrade(lake.path) == {MESSAGES.name: 1, f"{MESSAGES.name}@old1": 1, TRUTH.name: 1}
    assert upgrade(lake.path) == {}
    assert [row.asDict() for row in lake.read(TRUTH).collect()] == [truth]
    lake.compact(MESSAGES, grace_s=0.0)
    assert [row.seq for row in lake.read(MESSAGES).collect()] == [2]
    assert DeltaTable(lake.path / f"{MESSAGES.name}@old1").to_pyarrow_table()["seq"].to_pylist() == [1]
