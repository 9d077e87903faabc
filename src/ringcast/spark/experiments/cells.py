"""`cells`: of every configuration of an experiment and every metric the samples of all repetitions as one: mean,
deviation (divided by n, as the papers have it), median, 95th and 99th percentile, least, most and sum.

Of experiments whose configurations name no transport: `grid` and `round_trips` look at the others. Percentiles are
values that really occurred, by the rank that `ringcast.lab.measuring.samples` uses.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.components import METRIC as PART_OF_A_DELAY
from ringcast.spark.experiments.results import EMPTY, latest, opened
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import CELLS

KEY = ("experiment", "configuration", "metric")


@pipeline(
    "cells",
    "every configuration's samples: mean, deviation, percentiles, least, most and sum",
    reads={"results": RESULTS},
    writes=CELLS,
    key=KEY,
    needs={"results": EMPTY},
)
def cells(results: DataFrame) -> DataFrame:
    found = opened(latest(results)).where("transport is null").where(F.col("metric") != PART_OF_A_DELAY)
    pooled = found.groupBy(*KEY).agg(
        F.first("unit").alias("unit"), F.countDistinct("repetition").alias("repetitions"),
        F.count("*").alias("samples"), F.avg("value").alias("mean"), F.stddev_pop("value").alias("std"),
        F.min("value").alias("least"), F.max("value").alias("most"), F.sum("value").alias("total"),
        F.sort_array(F.collect_list("value")).alias("_ordered"),
    )  # fmt: skip
    return pooled.select(
        *KEY, "unit", "repetitions", "samples", "mean", "std", _rank(0.5).alias("p50"), _rank(0.99).alias("p99"),
        "least", "most", _rank(0.95).alias("p95"), "total",
    )  # fmt: skip


def _rank(share: float) -> Column:
    at = F.least(F.col("samples") - 1, F.floor(F.col("samples") * share))
    return F.element_at("_ordered", (at + 1).cast("int"))
