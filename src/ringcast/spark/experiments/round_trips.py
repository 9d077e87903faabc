"""The tables of the push-pull papers (000, Tables 1 to 3; 001, Experiments 1 to 4): round trips by place of the proxy,
size, subscribers and hops, and how those compare that differ in one of these.

A repetition is a batch of round trips, one after the other; all arrangements are measured once per repetition. Of
several batches the one with the middle mean is told: the papers report one, and this one depends least on what else
the machine did. What is compared is compared within a repetition, so that what slows the machine for a while cancels.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY, latest, opened
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import ARRANGED, CONTRASTS, ROUND_TRIPS

METRIC = "round_trip"
ARRANGEMENT = ARRANGED.fieldNames()
VARIED = ("proxy", "subscribers", "hops")
_US = 1e-3


def samples(results: DataFrame) -> DataFrame:
    """One row per round trip: where everything was, `repetition`, and `ns`."""
    found = opened(latest(results).where(F.col("metric") == METRIC))
    typed: list[Column] = [F.element_at("keys", f.name).cast(f.dataType).alias(f.name) for f in ARRANGED
                           if f.name not in ("experiment", "transport")]  # fmt: skip
    return found.select("experiment", "transport", *typed, "repetition", F.col("value").alias("ns"))


def batches(trips: DataFrame) -> DataFrame:
    """One row per arrangement and repetition: mean, deviation (divided by n, as the papers have it) and median."""
    return trips.groupBy(*ARRANGEMENT, "repetition").agg(
        F.avg("ns").alias("mean"), F.stddev_pop("ns").alias("std"), _rank(0.5).alias("p50")
    )


@pipeline(
    "round_trips",
    "the push-pull papers' tables: round trips by place of the proxy, size, subscribers and hops",
    reads={"results": RESULTS},
    writes=ROUND_TRIPS,
    key=ARRANGEMENT,
    needs={"results": EMPTY},
)
def round_trips(results: DataFrame) -> DataFrame:
    trips = samples(results)
    order = Window.partitionBy(*ARRANGEMENT).orderBy("mean", "repetition")
    every = Window.partitionBy(*ARRANGEMENT)
    middle = (
        batches(trips).withColumns({"_at": F.row_number().over(order), "repetitions": F.count("*").over(every)})
        .where("_at = (repetitions + 1) div 2")
    )  # fmt: skip
    pooled = trips.groupBy(*ARRANGEMENT).agg(
        F.count("*").alias("samples"), (_rank(0.5) * _US).alias("p50_us"), (_rank(0.99) * _US).alias("p99_us")
    )
    told = middle.select(
        *ARRANGEMENT, "repetitions", (F.col("mean") * _US).alias("mean_us"), (F.col("std") * _US).alias("std_us")
    )
    return told.join(pooled, ARRANGEMENT).select(
        *ARRANGEMENT, "repetitions", "samples", "mean_us", "std_us", "p50_us", "p99_us"
    )


@pipeline(
    "contrasts",
    "what a proxy, more subscribers or more hops change in a round trip",
    reads={"results": RESULTS},
    writes=CONTRASTS,
    key=[*ARRANGEMENT, "varied", "against"],
    needs={"results": EMPTY},
)
def contrasts(results: DataFrame) -> DataFrame:
    ours = batches(samples(results)).select(*ARRANGEMENT, "repetition", "p50")
    base = ours.select(
        *(F.col(name).alias(f"base_{name}" if name in VARIED else name) for name in (*ARRANGEMENT, "repetition")),
        F.col("p50").alias("base_p50"),
    )
    same = [name for name in (*ARRANGEMENT, "repetition") if name not in VARIED]
    differs = [F.when(F.col(name) != F.col(f"base_{name}"), F.lit(name)) for name in VARIED]
    against = [F.when(F.col("varied") == name, F.col(f"base_{name}").cast("string")) for name in VARIED]
    pairs = (
        ours.join(base, same)
        .withColumn("_differ", F.array_compact(F.array(*differs)))
        .where(F.size("_differ") == 1)
        .withColumn("varied", F.element_at("_differ", 1))
        .withColumn("against", F.coalesce(*against))
    )
    ratio, apart = F.col("p50") / F.col("base_p50"), (F.col("p50") - F.col("base_p50")) * _US
    return pairs.groupBy(*ARRANGEMENT, "varied", "against").agg(
        F.count("*").alias("repetitions"), F.median(ratio).alias("ratio"), F.median(apart).alias("difference_us")
    )


def _rank(share: float) -> Column:
    """A value that really occurred."""
    return F.expr(f"percentile_disc({share}) within group (order by ns)")
