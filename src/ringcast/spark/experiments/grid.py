"""The grid of paper 004 (ADAMANT): every transport in every environment, by every metric, and which is best there.

Lower is better, but for `delivered` and `usable_frames`. An environment is what the configuration says beside the
transport and how long it was looked at.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ringcast.adapt.wanting import MORE_IS_BETTER
from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY, latest, opened
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import GRID

_KEYS = ("receivers", "loss_percent", "burst", "rate_hz", "payload_bytes", "delay_us", "bandwidth_mbit", "real")


def runs(results: DataFrame) -> DataFrame:
    """One row per run, metric and transport, of experiments that chose one: `environment` as JSON, sorted by key."""
    chosen = opened(latest(results)).where("transport is not null and map_contains_key(keys, 'receivers')")
    chosen = chosen.where("metric <> 'round_trip'")
    return chosen.withColumn("environment", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("keys")))))


@pipeline(
    "grid",
    "transports under loss (paper 004): means by environment, and which is best where",
    reads={"results": RESULTS},
    writes=GRID,
    key=["experiment", "environment", "transport", "metric"],
    needs={"results": EMPTY},
)
def grid(results: DataFrame) -> DataFrame:
    means = runs(results).groupBy("experiment", "environment", "transport", "metric").agg(
        F.first("unit").alias("unit"), F.count("*").alias("repetitions"), F.avg("value").alias("mean"),
        F.min("value").alias("least"), F.max("value").alias("most"),
    )  # fmt: skip
    there = Window.partitionBy("experiment", "environment", "metric").orderBy(_cost(F.col("mean")), "transport")
    said = F.from_json("environment", "map<string, string>")
    keys = [F.element_at(said, name).cast(GRID.schema[name].dataType).alias(name) for name in _KEYS]
    return means.select(
        "experiment", "environment", *keys, "transport", "metric", "unit", "repetitions", "mean", "least", "most",
        F.row_number().over(there).alias("place"),
    )  # fmt: skip


def winners(found: DataFrame) -> DataFrame:
    """Of a grid: in how many `environments` each transport is best, by experiment and metric."""
    best = found.where("place = 1").groupBy("experiment", "metric", "transport")
    return best.agg(F.count("*").alias("environments"))


def repeatable(results: DataFrame, metric: str, within: float = 0.05) -> float:
    """Share of environments where the best of the first repetition is the best of the second too, or within that share
    of it: no model can do better than the experiment repeats itself."""
    both = runs(results).where((F.col("metric") == metric) & F.col("repetition").isin(0, 1))
    each = both.groupBy("environment", "transport").pivot("repetition", [0, 1]).agg(F.avg(_cost(F.col("value"))))
    each = each.select("environment", "transport", F.col("0").alias("first"), F.col("1").alias("second"))
    chosen = each.groupBy("environment").agg(
        F.min_by("second", F.struct("first", "transport")).alias("taken"), F.min("second").alias("best")
    )
    row = chosen.agg(F.avg((F.col("taken") <= F.col("best") * (1 + within)).cast("double"))).first()
    return float(row[0]) if row is not None and row[0] is not None else float("nan")


def _cost(value: Column) -> Column:
    return F.when(F.col("metric").isin(*MORE_IS_BETTER), -value).otherwise(value) if MORE_IS_BETTER else value
