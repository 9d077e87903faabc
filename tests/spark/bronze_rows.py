"""Bronze rows for tests, and ways to send the same rows through a batch and a stream."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.upkeep import CLOCKS

EPOCH_NS = 1_767_268_800_000_000_000  # 2026-01-01T12:00Z


def message(tag: str, seq: int, at_ns: int, payload: bytes = b"{}", **more: Any) -> dict[str, Any]:
    event = EPOCH_NS + at_ns
    row = {
        "tag": tag, "publisher": f"{tag}/1", "incarnation": "00000000000000aa", "node": "n", "seq": seq, "every": 1,
        "event_ns": event, "sent_ns": event + 1000, "received_ns": event + 500_000, "lost": 0, "discardable": False,
        "codec": "json", "schema_id": None, "payload": payload,
    }  # fmt: skip
    row.update(more)
    row["event_time"] = dt.datetime.fromtimestamp(row["event_ns"] // 1000 / 1e6, dt.UTC)
    return row


def frame(spark: SparkSession, rows: Iterable[dict[str, Any]]) -> DataFrame:
    names = MESSAGES.columns
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], MESSAGES.schema)


def clocks(spark: SparkSession, *rows: tuple[str, int, int, float, int]) -> DataFrame:
    return spark.createDataFrame(list(rows), CLOCKS.schema)


def streamed(
    spark: SparkSession,
    parts: list[DataFrame],
    pipeline: Callable[[DataFrame], DataFrame],
    directory: Path,
) -> list[Row]:
    """Rows that `pipeline` gives for a stream that sees `parts` one after the other."""
    ending(spark)
    source = directory / "in"
    for at, part in enumerate(parts):
        part.coalesce(1).write.mode("append").parquet(str(source / f"part={at}"))
    frames = spark.readStream.schema(MESSAGES.schema).option("maxFilesPerTrigger", 1)
    name = f"t{abs(hash(str(directory)))}"
    query = (
        pipeline(frames.parquet(str(source / "*")))
        .writeStream.format("memory").queryName(name).outputMode("append")
        .option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    return spark.table(name).collect()


def ending(spark: SparkSession) -> None:
    """Let a stream that has read everything run once more, so that what its last rows ended comes out."""
    spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")


def plain(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Comparable, whatever the order."""

    def value(cell: Any) -> Any:
        return bytes(cell) if isinstance(cell, bytearray) else tuple(cell) if isinstance(cell, list) else cell

    return sorted((tuple(map(value, row)) for row in rows), key=repr)
