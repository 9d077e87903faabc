"""Refining decodes, translates times, keeps one of several copies, and gives a reason for what it cannot decode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from bronze_rows import EPOCH_NS, clocks, frame, message, plain, streamed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.codec import find
from ringcast.model.tag import matches
from ringcast.rescue.tables import GPS, INFRARED
from ringcast.spark.pipelines.ingest import ingest
from ringcast.spark.pipelines.refine import of_pattern, refine

MS = 1_000_000
FIX = {"x": 1, "y": 2.5, "z": 3.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}


def gps(seq: int, at_ms: int, **more: Any) -> dict[str, Any]:
    return message("uav/1/gps", seq, at_ms * MS, **{"payload": msgspec.json.encode({**FIX, "x": seq}), **more})


def test_records_are_decoded_or_refused_with_a_reason(spark: SparkSession) -> None:
    rows = [
        gps(0, 0),
        gps(1, 10, codec="msgpack", payload=msgspec.msgpack.encode(FIX)),
        gps(2, 20, payload=b"{"),
        gps(3, 30, payload=b'{"x": 1}'),
        gps(4, 40, payload=msgspec.json.encode({**FIX, "y": "north"})),
        gps(5, 50, codec="bytes"),
        gps(6, 60, codec="no such codec"),
        gps(7, 70, codec="numpy", payload=b"\x93garbage"),
        message("uav/1/pose", 0, 0),
    ]
    found = {row.seq: row for row in refine(frame(spark, rows), clocks(spark), GPS).collect()}
    assert found.keys() == set(range(8))
    assert (found[0].x, found[0].y, found[0].rejected, found[0].payload) == (0.0, 2.5, None, None)
    assert found[1].x == 1.0
    for seq, reason in {2: "truncated", 3: "no y", 4: "'north'", 5: "only bytes", 6: "no such", 7: "numpy"}.items():
        assert reason in found[seq].rejected
        assert found[seq].x is None
        assert found[seq].payload is not None


def test_arrays_lie_in_the_table_as_little_endian_bytes(spark: SparkSession) -> None:
    image = np.arange(12, dtype=">u2").reshape(3, 4)
    head, data = find("numpy").bind(None).encode(image)  # type: ignore[misc]
    row = message("uav/1/ir", 0, 0, bytes(head) + bytes(data), codec="numpy")
    found = refine(frame(spark, [row]), clocks(spark), INFRARED).first()
    assert found is not None
    assert found.rejected is None
    assert np.array_equal(np.frombuffer(found.data, found.dtype).reshape(found["shape"]), image)


def test_times_come_into_one_base_by_the_clock_that_held_then(spark: SparkSession) -> None:
    table = clocks(spark, ("n", 0, 50 * MS, 0.0, 0), ("n", EPOCH_NS + 1000 * MS, -7, 2000.0, 0), ("m", 0, 1, 0.0, 0))
    rows = [gps(0, 100), gps(1, 1500), gps(2, 100, node="elsewhere"), gps(3, 100)]
    rows[3]["received_ns"] = rows[3]["sent_ns"]  # as it is of one that was pulled
    found = {r.seq: r for r in refine(frame(spark, rows), table, GPS).collect()}
    assert found[0].event_ns == EPOCH_NS + 50 * MS
    assert found[0].sent_ns == found[0].event_ns + 1000
    assert found[0].received_ns == EPOCH_NS + 100 * MS + 500_000
    assert found[3].received_ns == found[3].sent_ns == EPOCH_NS + 50 * MS + 1000
    assert found[1].clock_offset_ns == -7 + 1000, "2000 parts in a thousand million, of half a second"
    assert found[2].clock_offset_ns == 0
    assert found[0].event_time.timestamp() == pytest.approx((EPOCH_NS + 50 * MS) / 1e9, abs=1e-6)


def test_a_batch_and_a_stream_refine_alike_and_the_first_copy_stays(spark: SparkSession, tmp_path: Path) -> None:
    rows = [gps(seq, seq * 10) for seq in range(6)]
    again = [gps(seq, seq * 10, received_ns=EPOCH_NS + 900 * MS) for seq in (2, 5)]
    restarted = [gps(2, 70, incarnation="00000000000000bb")]
    table = clocks(spark, ("n", 0, 3 * MS, 0.0, 0)).cache()

    def pipeline(messages: DataFrame) -> DataFrame:
        return refine(ingest(messages), table, GPS)

    batch = pipeline(frame(spark, rows + again + restarted)).collect()
    stream = streamed(
        spark, [frame(spark, rows[:4]), frame(spark, rows[4:] + again), frame(spark, restarted)], pipeline, tmp_path
    )
    assert plain(batch) == plain(stream)
    assert len(batch) == 7
    assert all(row.received_ns < EPOCH_NS + 900 * MS for row in batch)


@pytest.mark.parametrize("pattern", ["uav/*/ir", "**", "uav/**", "**/ir", "a.b/*", "@x/*/c", "*/**/d", "uav/1/ir"])
def test_patterns_mean_what_they_mean_elsewhere(spark: SparkSession, pattern: str) -> None:
    names = ["uav/1/ir", "uav/1/2/ir", "uav", "ir", "a.b/c", "axb/c", "@x/1/c", "@x/y", "a/b/c/d", "a/d", "d"]
    found = spark.createDataFrame([(n,) for n in names], "tag string").where(of_pattern(F.col("tag"), pattern))
    assert sorted(r.tag for r in found.collect()) == sorted(n for n in names if matches(pattern, n))
