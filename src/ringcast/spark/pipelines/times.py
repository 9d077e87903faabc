"""Times of several clocks in one base, and messages once each.

The table `clocks` says how far a node's clock was ahead of the base from an instant of that clock on; a node that it
does not name is taken to have the base's clock. This is the translation of time stamps of paper 002, section V: the
clocks stay as they are.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ringcast.spark.pipelines.constant import constant
from ringcast.spark.tables.bronze import KEY

WATERMARK = "2 seconds"
"""How long a stream waits for what is late."""

AHEAD_NS = 1_000_000_000
"""A message cannot have happened after it was received. What claims to, by more than clocks are apart that nobody has
measured, is counted as received then: one message from next year would otherwise make a stream wait for nothing else.
"""

_FOREVER = 2**63 - 1


def translate(messages: DataFrame, clocks: DataFrame) -> DataFrame:
    """`event_ns`, `sent_ns` and `event_time` in the base, and what was subtracted as `clock_offset_ns`. An event time
    beyond AHEAD_NS after the reception is cut to that, in `event_time` alone. A message that was pulled has the time of
    sending for that of reception, which is then one of the sender's clock."""
    following = F.lead("from_ns").over(Window.partitionBy("node").orderBy("from_ns"))
    spans = clocks.select(
        F.col("node").alias("_node"),
        F.col("from_ns").alias("_from"),
        F.coalesce(following, F.lit(_FOREVER)).alias("_until"),
        F.col("offset_ns").alias("_offset"),
        F.col("drift_ppb").alias("_drift"),
    )
    since, until = F.col("event_ns") >= F.col("_from"), F.col("event_ns") < F.col("_until")
    spans = constant(spans, messages)
    within = (F.col("node") == F.col("_node")) & since & until
    drift = F.round(F.col("_drift") * (F.col("event_ns") - F.col("_from")) / 1e9).cast("bigint")
    offset = F.coalesce(F.col("_offset") + drift, F.lit(0))
    shifted = messages.join(F.broadcast(spans), within, "left").withColumn("clock_offset_ns", offset)
    pulled = F.col("received_ns") == F.col("sent_ns")
    received = F.col("received_ns") - F.when(pulled, F.col("clock_offset_ns")).otherwise(0)
    return shifted.withColumns(
        {
            "received_ns": received,
            "event_ns": F.col("event_ns") - F.col("clock_offset_ns"),
            "sent_ns": F.col("sent_ns") - F.col("clock_offset_ns"),
            "event_time": instant(F.least(F.col("event_ns") - F.col("clock_offset_ns"), received + AHEAD_NS)),
        }
    ).drop("_node", "_from", "_until", "_offset", "_drift")


def ahead() -> Column:
    """Why a translated message's time is not believed; null where it is."""
    by = F.round((F.col("event_ns") - F.col("received_ns")) / 1e9, 1)
    text = F.concat(F.lit("its event time is "), by.cast("string"), F.lit(" s after it was received; see 'clocks'"))
    return F.when(F.col("event_ns") - F.col("received_ns") > AHEAD_NS, text)


def instant(ns: Column) -> Column:
    """Nanoseconds as a timestamp, cut to microseconds."""
    # Integer arithmetic: a double has 53 bits, and nanoseconds since 1970 take 61.
    return F.timestamp_micros(F.call_function("div", ns, F.lit(1000)))


def watched(rows: DataFrame, watermark: str = WATERMARK) -> DataFrame:
    """Rows as the pipelines take them: a stream's event time is watched, so that windows and joins can end.

    Once per stream. `deduplicate` and `refine` do it themselves.
    """
    return rows.withWatermark("event_time", watermark) if rows.isStreaming else rows


def deduplicate(messages: DataFrame, watermark: str = WATERMARK) -> DataFrame:
    """Every message once: the copy that was received first."""
    if messages.isStreaming:
        return watched(messages, watermark).dropDuplicatesWithinWatermark(list(KEY))
    first = F.row_number().over(Window.partitionBy(*KEY).orderBy("received_ns"))
    return messages.withColumn("_copy", first).where("_copy = 1").drop("_copy")
