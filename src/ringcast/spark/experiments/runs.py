"""`runs`: paper 004's two rivals, its reliable multicast and Ricochet, run by run (its Figures 16 to 21)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY, latest, opened
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import RUNS

EXPERIMENT = "adamant"
TRANSPORTS = ("nak", "lateral:r=4,c=3", "lateral:r=8,c=3")
METRICS = ("latency_mean", "delivered", "relate2")
_KEYS = ("receivers", "loss_percent", "burst", "rate_hz")


@pipeline(
    "runs",
    "reliable multicast and Ricochet, run by run (paper 004, Figures 16 to 21)",
    reads={"results": RESULTS},
    writes=RUNS,
    key=["experiment", *_KEYS, "transport", "repetition", "metric"],
    needs={"results": EMPTY},
)
def runs(results: DataFrame) -> DataFrame:
    own = results.where((F.col("experiment") == EXPERIMENT) & F.col("metric").isin(*METRICS))
    found = opened(latest(own)).where(F.col("transport").isin(*TRANSPORTS))
    keys = [F.element_at("keys", name).cast(RUNS.schema[name].dataType).alias(name) for name in _KEYS]
    return found.select("experiment", *keys, "transport", "repetition", "metric", "value", "unit")
