"""Messages that are there now, as fast as Spark reads its own files: bronze columns, without a decoded value.

The format `ringcast` sends six names with every row through a Python worker, because a Python source cannot do less.
`held` has it send a number instead, and Spark itself puts the names there, which are values of the query. `recorded`
has Spark read a recording's files: they are Parquet.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ringcast.record.bronze import format_of, incarnation_text, publisher_name
from ringcast.record.recording import Recording
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tags.options import read_options
from ringcast.spark.tags.planning import Plan

_NAMES = ("tag", "publisher", "incarnation", "node", "codec", "schema_id")
_PATTERN = re.compile(r"[][*?{}\\]")


def held(
    spark: SparkSession, tag: str, socket: str | None = None, options: Mapping[str, str] | None = None
) -> DataFrame:
    """What the rings of these tags hold now: the rows of `spark.read.format("ringcast")`, of the streams that are there
    when this is called. `options` are those of the format. Raises DaemonUnavailable, BadTagName, ValueError."""
    given = {"tag": tag, "decode": "false", **({"socket": socket} if socket is not None else {}), **(options or {})}
    chosen = read_options(given, streaming=False)
    rings = Plan(chosen).rings()
    if not rings:
        return spark.createDataFrame([], MESSAGES.schema)
    rows = [
        (ring.info.tag, publisher_name(ring.info), incarnation_text(ring.info.incarnation), ring.info.node,
         *format_of(ring.attributes))
        for ring in rings
    ]  # fmt: skip
    reader = spark.read.format("ringcast").options(**given)
    found = reader.option("streams", ",".join(row[2] for row in rows)).load()

    def named(at: int) -> Column:
        values = [F.lit(row[at]).cast("string") for row in rows]
        # Most queries are of one stream or few; of one, its names are constants.
        return values[0] if len({row[at] for row in rows}) == 1 else F.get(F.array(*values), F.col("stream"))

    made = {
        **{name: named(at) for at, name in enumerate(_NAMES)},
        "every": F.lit(chosen.every).cast("bigint"),
        "event_time": F.timestamp_micros(F.expr("event_ns div 1000 - if(event_ns % 1000 < 0, 1, 0)")),
    }
    return found.select(*(made.get(name, F.col(name)).alias(name) for name in MESSAGES.columns))


def recorded(spark: SparkSession, path: str | os.PathLike[str], tag: str | None = None) -> DataFrame:
    """All that a recording holds, or that of the tags which match. File by file, whatever the number of streams; the
    tags are a list by then, so Spark leaves out what does not have them. Raises RecordingError, BadTagName."""
    recording = Recording(Path(path).absolute())
    spans = list(recording.spans(tag))
    files = sorted({str(recording.path_of(commit)) for commit, _ in spans})
    if not files:
        return spark.createDataFrame([], MESSAGES.schema)
    # Spark takes brackets and asterisks for a pattern; they are names.
    rows = spark.read.schema(MESSAGES.schema).parquet(*(_PATTERN.sub(r"\\\g<0>", file) for file in files))
    return rows.where(F.col("tag").isin(sorted({span.tag for _, span in spans})))
