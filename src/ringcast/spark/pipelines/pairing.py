"""Rows of two streams that belong to about the same instant.

An outer join in event time within a bound. Spark wants an equality to join streams: time is cut into buckets as long
as the bound, and each row of the right side is put into its own bucket and both neighbours, where every left row within
the bound finds it exactly once. Left rows without a partner come out with nulls, in a stream when the watermark says
that none can come any more. Nothing but time and the given keys decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def pair(left: DataFrame, right: DataFrame, keys: Sequence[str], bound_us: int, name: str) -> DataFrame:
    """Left rows, each with one right row within `bound_us`, once for every such row; the right one's columns as
    `<name>_...`, its event time as `<name>_ns` only.

    Both have `event_time`, `event_ns` and the keys; streams are `watched`.
    """
    bucket = F.col("_bucket")
    spread = right.withColumn("_bucket", F.explode(F.array(*(_bucket(bound_us) + F.lit(n) for n in (-1, 0, 1)))))
    others = [c for c in right.columns if c not in keys and c not in ("event_time", "event_ns")]
    partners = spread.select(
        *(F.col(key).alias(f"_{key}") for key in keys),
        bucket.alias("_their_bucket"),
        F.col("event_time").alias("_their_time"),
        F.col("event_ns").alias(f"{name}_ns"),
        *(F.col(c).alias(f"{name}_{c}") for c in others),
    )
    bound = F.expr(f"INTERVAL {bound_us} MICROSECOND")
    near = (F.col("_their_time") >= F.col("event_time") - bound) & (F.col("_their_time") <= F.col("event_time") + bound)
    condition = (bucket == F.col("_their_bucket")) & near
    for key in keys:
        condition &= F.col(key) == F.col(f"_{key}")
    joined = left.withColumn("_bucket", _bucket(bound_us)).join(partners, condition, "left")
    return joined.drop("_bucket", "_their_bucket", "_their_time", *(f"_{key}" for key in keys))


def _bucket(bound_us: int) -> Column:
    # Microseconds, as the comparison: a bucket of nanoseconds would part two that the timestamps call equal.
    return F.call_function("div", F.unix_micros("event_time"), F.lit(bound_us))
