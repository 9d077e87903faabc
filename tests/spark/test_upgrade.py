"""A lake of the older format, with manifests of its own, is converted once, and its rows are those that it had."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bronze_rows import frame, message
from pyspark.sql import SparkSession

from ringcast.spark.lake import Lake, LakeError
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.upgrade import upgrade

MS = 1_000_000


def test_an_older_lake_is_refused_then_converted_with_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake")
    for seq in range(3):
        lake.append(MESSAGES, frame(spark, [message("a/b", seq, seq * 3_600_000 * MS)]).coalesce(1))
    # The same files as the older code laid them out: the second replaced the first, and a state stands in between.
    version = lake.path / MESSAGES.name / "v1"
    entries = []
    for at, (name, file) in enumerate(
        sorted(lake.state(MESSAGES).files.items(), key=lambda item: str(item[1].partition))
    ):
        path = version / "data" / str(file.partition) / f"{at}.parquet"
        path.parent.mkdir(parents=True)
        shutil.move(lake.location(MESSAGES) / name, path)
        entries.append({"path": str(path.relative_to(version)), "partition": file.partition, "rows": 1, "size": 1})
    shutil.rmtree(lake.location(MESSAGES) / "_delta_log")
    (version / "manifests").mkdir()
    first = {"number": 0, "added": entries[:1], "removed": [], "state": {"files": {entries[0]["path"]: entries[0]}}}
    later = {"number": 1, "added": entries[1:], "removed": [entries[0]["path"]], "state": None}
    for commit in (first, later):
        (version / "manifests" / f"{commit['number']:012d}.json").write_text(json.dumps(commit))
    with pytest.raises(LakeError, match="ringcast pipeline upgrade"):
        lake.read(MESSAGES)
    assert upgrade(lake.path) == {MESSAGES.name: 2}
    assert upgrade(lake.path) == {}
    assert sorted(row.seq for row in lake.read(MESSAGES).collect()) == [1, 2]
    assert [row.seq for row in lake.read(MESSAGES, ["2026-01-01T14"]).collect()] == [2]
