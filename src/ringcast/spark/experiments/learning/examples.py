"""What `train` learns from: experiment results as environments, with what every transport cost there.

One row per environment: its keys, the mean cost by transport, which of them was lowest, and which are `good`: as low,
or nearly so. Whole environments are held out; which ones is decided by a hash, anew in every split.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.adapt.features import evaluator, inputs, parts
from ringcast.adapt.wanting import MORE_IS_BETTER, SLACK, candidate, plain
from ringcast.spark.experiments.results import opened

BOUND, TINY = 0.2, 1e-9
MEASURED = "real"
OFTEN = 0.1
"""Of the environments of the transport that was run most often."""
HELD_OUT = 4
"""One environment in so many is kept from the families."""


def costs(results: DataFrame, metric: str) -> DataFrame:
    """One row per environment: `environment` (its keys as JSON), and `cost` by transport (a map), mean of repetitions,
    of transports that a model for that metric may choose. Where only one was run there is nothing to compare.

    What was never delivered has no finite cost and stays infinite.
    """
    base, in_order = plain(metric)
    value = 100 - F.col("value") if base in MORE_IS_BETTER else F.col("value")
    rows = opened(results.where(F.col("metric") == base)).where("transport is not null")
    # Where it was measured is no part of the environment: a daemon that asks a model has only the real one.
    keys = F.map_filter("keys", lambda name, _: name != MEASURED)
    rows = rows.withColumn("environment", F.to_json(F.map_from_entries(F.array_sort(F.map_entries(keys)))))
    known = often([(row[0], row[1]) for row in rows.groupBy("transport").agg(F.countDistinct("environment")).collect()])
    means = (
        rows.where(F.col("transport").isin([name for name in known if candidate(name, in_order)]))
        .groupBy("environment", "transport").agg(F.avg(value).alias("cost"))
    )  # fmt: skip
    found = means.groupBy("environment").agg(
        F.map_from_entries(F.array_sort(F.collect_list(F.struct("transport", "cost")))).alias("cost")
    )
    return found.where(F.size("cost") > 1)


def often(environments: Sequence[tuple[str, int]]) -> list[str]:
    """Of transports and in how many environments each was run: those of which enough is known. One that was run in a
    few alone would be taken for as good everywhere."""
    most = max((number for _, number in environments), default=0)
    return sorted(name for name, number in environments if number >= OFTEN * most)


def examples(environments: DataFrame, keys: Sequence[str], metric: str, within: float) -> DataFrame:
    """With `keys` as numbers, what the `best` transport is and costs, and the names of those that are `good`."""
    said = F.from_json("environment", "map<string, string>")
    lowest = F.array_min(F.map_values("cost"))
    slack = lowest * (1 + within) + SLACK.get(plain(metric)[0], 0.0)
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


TIMED = (
    "way_us", "wire_us/way_us", "receivers*wire_us/way_us", "period_us/way_us", "repair_us/way_us",
    "loss_percent*repair_us/way_us", "block_us/way_us", "loss_percent*block_us/way_us",
    "loss_percent*period_us/way_us", "repair_us/period_us", "loss_percent*repair_us/period_us",
    "receivers*loss_percent", "loss_percent*burst", "loss_percent/burst", "wire_us/period_us",
    "receivers*wire_us/period_us", "block_us/repair_us", "period_us/repair_us", "receivers/period_us",
    "receivers*wire_us/way_us/loss_percent", "block_us/period_us", "receivers*way_us/period_us",
    "burst*period_us/way_us", "clash_us/way_us", "seen_us/way_us", "loss_percent*seen_us/way_us", "seen_us/repair_us",
    "period_us",
)  # fmt: skip
"""How long one thing takes against another, and how often that matters: what decides which transport is better."""


SMOOTH = (
    "way_us", "wire_us/way_us", "receivers", "period_us/way_us", "repair_us/way_us", "block_us/way_us", "lossy_percent",
    "burst", "held_us/way_us", "seen_us/way_us", "block_messages", "payload_bytes",
)  # fmt: skip
"""The same for networks, which make sums of them themselves: each of these is no sum of the others."""


def smooth(keys: Sequence[str]) -> list[str]:
    """`SMOOTH`, or the keys where those cannot all be computed."""
    return list(SMOOTH) if set(inputs(SMOOTH)) <= set(keys) else list(keys)


def timed(keys: Sequence[str]) -> list[str]:
    """The keys and `TIMED`; where those cannot all be computed, what is `combined` takes the place of the others."""
    known = [feature for feature in TIMED if set(inputs([feature])) <= set(keys)]
    return [*keys, *known] if len(known) == len(TIMED) else [*combined(keys), *known]


def cover(good: Sequence[Sequence[str]], share: float) -> list[str]:
    """So few transports that in so large a share of the environments one of them is good: the more there are to choose
    from, the more often a family mistakes one for another that is hardly ever needed."""
    left, chosen = [set(names) for names in good], []
    while len(left) > round((1 - share) * len(good), 6):
        counts = Counter(name for names in left for name in names)
        chosen.append(min(counts, key=lambda name: (-counts[name], name)))
        left = [names for names in left if chosen[-1] not in names]
    return sorted(chosen)


def looked_at(rows: DataFrame, keys: Sequence[str], features: Sequence[str]) -> Column:
    """The features' logarithms as an array, by the very code that evaluates models."""
    values = evaluator(features, True)
    return F.udf(lambda *numbers: values(dict(zip(keys, numbers, strict=True))), "array<double>")(
        *map(rows.__getitem__, keys)
    )


def excess(labels: Sequence[str], metric: str) -> Column:
    """By label, the logarithm of what it cost above the lowest, softly bounded: who is far behind need not be known
    exactly. What never delivered is at the bound; what was not run there is unknown (NaN)."""
    slack = F.lit(SLACK.get(plain(metric)[0], 0.0) + TINY)
    cost = F.col("cost")
    return F.array(*(
        BOUND * (1 - F.pow((F.col("lowest") + slack) / (F.coalesce(cost[name], F.lit(math.nan)) + slack), 1 / BOUND))
        for name in labels
    ))  # fmt: skip
