"""Rows of two streams that belong to about the same instant.

An outer join in event time within a bound. Spark wants an equality to join streams: time is cut into buckets as long
as the bound, and each row of the right side is put into its own bucket and both neighbours, where every left row within
the bound finds it exactly once. Left rows without a partner come out with nulls, in a stream when the watermark says
that none can come any more. Nothing but time and the given keys decides.

`pair_both` keeps the right rows without a partner, too, and therefore puts the left ones into three buckets: of a right
row that is there once it can be said that it found none.
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
    partners = _partners(_spread(right, bound_us), keys, name)
    joined = left.withColumn("_bucket", _bucket(bound_us)).join(partners, _near(keys, bound_us), "left")
    return joined.drop("_bucket", "_their_bucket", "_their_time", *(f"_{key}" for key in keys))


def pair_both(left: DataFrame, right: DataFrame, keys: Sequence[str], bound_us: int, name: str) -> DataFrame:
    """As `pair`, and right rows without a partner, once each: with their keys and `event_time`, and nulls for what is
    of the left. A left row comes with a partner for each that it has, and up to three times without one."""
    partners = _partners(right.withColumn("_bucket", _bucket(bound_us)), keys, name)
    joined = _spread(left, bound_us).join(partners, _near(keys, bound_us), "full")
    # What Spark knows of a column, that a stream's time is watched by it for one, is forgotten by an expression.
    known = left.schema["event_time"].metadata
    either = {key: F.coalesce(F.col(key), F.col(f"_{key}")).alias(key) for key in keys}
    either["event_time"] = F.coalesce(F.col("event_time"), F.col("_their_time")).alias("event_time", metadata=known)
    others = [c for c in partners.columns if not c.startswith("_")]
    return joined.select(*(either.get(c, F.col(c)) for c in left.columns), *others)


def _spread(rows: DataFrame, bound_us: int) -> DataFrame:
    return rows.withColumn("_bucket", F.explode(F.array(*(_bucket(bound_us) + F.lit(n) for n in (-1, 0, 1)))))


def _partners(right: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    others = [c for c in right.columns if c not in keys and c not in ("event_time", "event_ns", "_bucket")]
    return right.select(
        *(F.col(key).alias(f"_{key}") for key in keys),
        F.col("_bucket").alias("_their_bucket"),
        F.col("event_time").alias("_their_time"),
        F.col("event_ns").alias(f"{name}_ns"),
        *(F.col(c).alias(f"{name}_{c}") for c in others),
    )


def _near(keys: Sequence[str], bound_us: int) -> Column:
    bound = F.expr(f"INTERVAL {bound_us} MICROSECOND")
    near = (F.col("_their_time") >= F.col("event_time") - bound) & (F.col("_their_time") <= F.col("event_time") + bound)
    condition = (F.col("_bucket") == F.col("_their_bucket")) & near
    for key in keys:
        condition &= F.col(key) == F.col(f"_{key}")
    return condition


def _bucket(bound_us: int) -> Column:
    # Microseconds, as the comparison: a bucket of nanoseconds would part two that the timestamps call equal.
    return F.call_function("div", F.unix_micros("event_time"), F.lit(bound_us))
