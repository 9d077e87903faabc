"""What `train` learns from: experiment results as environments, with what every transport cost there.

One row per environment: its keys, the mean cost by transport, which of them was lowest, and which are `good`: as low,
or nearly so. Whole environments are held out; which ones is decided by a hash, anew in every split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.adapt.features import LEAST, parts
from ringcast.spark.experiments.results import opened

HELD_OUT = 4
"""One environment in so many is kept from the families."""

MORE_IS_BETTER = {"delivered": 0.05, "usable_frames": 0.5}
"""Metrics in percent whose best is 100, and how many points beside the best are no difference: what is missing from
100 may be 0, of which 5 % are nothing. All other metrics are better the lower they are."""


def costs(results: DataFrame, metric: str) -> DataFrame:
    """One row per environment: `environment` (its keys as JSON), and `cost` by transport (a map), mean of repetitions.

    What was never delivered has no finite cost and stays infinite.
    """
    value = 100 - F.col("value") if metric in MORE_IS_BETTER else F.col("value")
    means = (
        opened(results.where(F.col("metric") == metric)).where("transport is not null")
        .withColumn("environment", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("keys")))))
        .groupBy("environment", "transport").agg(F.avg(value).alias("cost"))
    )  # fmt: skip
    return means.groupBy("environment").agg(
        F.map_from_entries(F.array_sort(F.collect_list(F.struct("transport", "cost")))).alias("cost")
    )


def examples(environments: DataFrame, keys: Sequence[str], metric: str, within: float) -> DataFrame:
    """With `keys` as numbers, what the `best` transport is and costs, and the names of those that are `good`."""
    said = F.from_json("environment", "map<string, string>")
    lowest = F.array_min(F.map_values("cost"))
    slack = lowest * (1 + within) + MORE_IS_BETTER.get(metric, 0.0)
    return environments.select(
        "environment", "cost", lowest.alias("lowest"),
        F.map_keys(F.map_filter("cost", lambda _, cost: cost == lowest))[0].alias("best"),
        F.map_keys(F.map_filter("cost", lambda _, cost: cost <= slack)).alias("good"),
        *(F.coalesce(F.element_at(said, name).cast("double"), F.lit(0.0)).alias(name) for name in keys),
    )  # fmt: skip


def held(split: int) -> Column:
    """Whether an environment is held out in that split."""
    digest = F.md5(F.concat_ws("|", "environment", F.lit(split)))
    return F.conv(F.substring(digest, 1, 4), 16, 10).cast("int") % HELD_OUT == 0


def number_keys(environments: DataFrame) -> list[str]:
    """Keys whose values are numbers in every environment that has them, and not always the same one."""
    pairs = environments.select(F.explode(F.from_json("environment", "map<string, string>")))
    kinds = pairs.groupBy("key").agg(
        F.min(F.expr("try_cast(value as double)").isNotNull()).alias("numeric"),
        F.countDistinct("value").alias("values"),
    )
    return sorted(row.key for row in kinds.collect() if row.numeric and row["values"] > 1)


MEANT = (
    "receivers*payload_bytes*rate_hz/bandwidth_mbit",
    "receivers*payload_bytes/bandwidth_mbit",
    "receivers*payload_bytes/bandwidth_mbit/delay_us",
    "payload_bytes/bandwidth_mbit/delay_us",
)
"""How full a publisher's line is; how long it takes to send to all in turn, by itself and against the way; how long one
datagram takes against the way."""


def combined(keys: Sequence[str]) -> list[str]:
    """The keys, every two of them multiplied and divided, and what has a meaning: a tree asks one number at a time."""
    pairs = [(one, other) for at, one in enumerate(keys) for other in keys[at + 1 :]]
    meant = [feature for feature in MEANT if {name for _, name in parts(feature)} <= set(keys)]
    return [*keys, *meant, *(f"{one}*{other}" for one, other in pairs), *(f"{one}/{other}" for one, other in pairs)]


def cover(good: Sequence[Sequence[str]], share: float) -> list[str]:
    """So few transports that in so large a share of the environments one of them is good: the more there are to choose
    from, the more often a family mistakes one for another that is hardly ever needed."""
    left, chosen = [set(names) for names in good], []
    while len(left) > round((1 - share) * len(good), 6):
        counts = Counter(name for names in left for name in names)
        chosen.append(min(counts, key=lambda name: (-counts[name], name)))
        left = [names for names in left if chosen[-1] not in names]
    return sorted(chosen)


def column(feature: str) -> Column:
    """The logarithm of a feature, as `ringcast.adapt.features` evaluates it."""
    logs = [(below, F.log(F.greatest(F.col(name), F.lit(LEAST)))) for below, name in parts(feature)]
    (_, value), *more = logs
    for below, other in more:
        value = value - other if below else value + other
    return value
