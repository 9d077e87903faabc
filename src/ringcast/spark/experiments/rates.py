"""`rates`: paper 002's test by n/dt, for its Figures 4 to 7 and what it says of losses, latency and jitter.

A repetition has one value of each metric, and one of them is how much it `lost`. Every metric is looked at over all
repetitions, over those that lost nothing (`kept`), and over those that lost something (`losing`): of these a mean says
nothing about the others. What the paper draws is of several sizes: by setting, by rate, by number of subscribers. Each
size is a row of its own, in which keys that were not looked at are null.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY, latest, opened
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRING, columns, join, optional
from ringcast.spark.tables.gold import RUN
from ringcast.spark.tables.table import Table

KEYS = ("transport", "load", "subscribers", "n", "dt_s", "rate")
SIZES = (
    KEYS,
    ("transport", "load", "subscribers", "rate"),
    ("transport", "load", "subscribers"),
    ("transport", "load"),
    ("transport", "rate"),
)
"""By which keys repetitions are put together."""

RATES = Table(
    "gold.rates",
    "paper 002's test: losses, latency and jitter by n/dt, subscribers, transport and load",
    join(
        columns(experiment=STRING, metric=STRING),
        optional(transport=STRING, load=STRING, subscribers=INT, n=DOUBLE, dt_s=DOUBLE, rate=DOUBLE),
        columns(runs=LONG, mean=DOUBLE, most=DOUBLE, fastest=DOUBLE, kept=LONG, losing=LONG),
        optional(kept_mean=DOUBLE, kept_median=DOUBLE, kept_most=DOUBLE, losing_mean=DOUBLE, a=DOUBLE, b=DOUBLE),
        RUN,
    ),
)
"""`a` and `b` are of a line through what was kept, over rates; `fastest` is the greatest of these rates at all."""


@pipeline(
    "rates",
    "paper 002's test by n/dt: losses, latency, jitter, and the lines through them",
    reads={"results": RESULTS},
    writes=RATES,
    needs={"results": EMPTY},
)
def rates(results: DataFrame) -> DataFrame:
    value, rate = F.col("value"), F.col("_rate")
    kept, losing = F.when(F.col("lost") == 0, value), F.when(F.col("lost") > 0, value)
    # Of one rate there is no line.
    apart = F.min(F.when(kept.isNotNull(), rate)) < F.max(F.when(kept.isNotNull(), rate))
    sizes = [["experiment", "metric", *size] for size in SIZES]
    found = _values(results).groupingSets(sizes, "experiment", "metric", *KEYS).agg(
        F.count("*").alias("runs"), F.avg("value").alias("mean"), F.max("value").alias("most"),
        F.max("_rate").alias("fastest"), F.count(kept).alias("kept"), F.count(losing).alias("losing"),
        F.avg(kept).alias("kept_mean"), F.median(kept).alias("kept_median"), F.max(kept).alias("kept_most"),
        F.avg(losing).alias("losing_mean"), F.when(apart, F.regr_intercept(kept, rate)).alias("a"),
        F.when(apart, F.regr_slope(kept, rate)).alias("b"),
    )  # fmt: skip
    return found.select([name for name in RATES.schema.fieldNames() if name not in RUN.fieldNames()])


def _values(results: DataFrame) -> DataFrame:
    """Every value of the last run, with what its repetition lost. What says nothing of losses is no such test."""
    own = opened(latest(results)).where("map_contains_key(keys, 'n') and map_contains_key(keys, 'dt_s')")
    keys = {name: F.element_at("keys", name).cast(RATES.schema[name].dataType) for name in KEYS[1:-1]}
    same = Window.partitionBy("experiment", "configuration", "repetition")
    lost = F.max(F.when(F.col("metric") == "lost", F.col("value"))).over(same)
    rate = F.round(F.col("n") / F.col("dt_s"), 6)
    # A key is null in rows that do not look at it: what is computed over it needs a copy.
    return own.withColumns({**keys, "lost": lost}).where("lost is not null").withColumns({"rate": rate, "_rate": rate})
