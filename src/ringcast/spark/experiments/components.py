"""Table 4 of paper 001: the components of the delay from publisher to subscriber, out of what was measured.

A part is measured many times, and its median counts. What a publisher or a proxy takes to communicate is what it takes
more when it does: the difference of two parts. What a proxy's daemon spends on receiving cannot be measured apart, so
that of the subscriber's daemon is used.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY, latest
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import COMPONENTS

METRIC = "delay_part"
_US = 1e-3
_MADE_OF = {
    "publisher cpu": ("send alone", None),
    "publisher communication": ("send", "send alone"),
    "subscriber receiving": ("receiving daemon", None),
    "subscriber ipc": ("waking", None),
    "subscriber cpu": ("taking", None),
    "proxy communication": ("proxy daemon", "receiving daemon"),
    "whole": ("whole", None),
}
"""The part that a component is, and the one that is taken off it."""


@pipeline(
    "components",
    "what the delay from publisher to subscriber is made of",
    reads={"results": RESULTS},
    writes=COMPONENTS,
    key=["experiment", "place", "component"],
    needs={"results": EMPTY},
)
def components(results: DataFrame) -> DataFrame:
    parts = _parts(latest(results).where(F.col("metric") == METRIC))
    made = F.array(*(
        F.struct(F.lit(name).alias("component"), F.lit(part).alias("part"), F.lit(less).cast("string").alias("less"))
        for name, (part, less) in _MADE_OF.items()
    ))  # fmt: skip
    median, less = (F.element_at("medians", F.col(f"one.{which}")) for which in ("part", "less"))
    found = parts.withColumn("one", F.explode(made)).select(
        "experiment", "place", "one.component",
        ((median - F.when(F.col("one.less").isNull(), 0.0).otherwise(less)) * _US).alias("us"),
        F.element_at("samples", F.col("one.part")).alias("samples"),
    )  # fmt: skip
    # With a daemon between both there is a proxy that receives.
    between = parts.where(F.map_contains_key("medians", F.lit("proxy daemon"))).select("experiment", "place")
    receives = found.where("component = 'subscriber receiving'").join(between, ["experiment", "place"])
    return found.unionByName(receives.withColumn("component", F.lit("proxy cpu"))).where("us is not null")


def _parts(rows: DataFrame) -> DataFrame:
    """One row per place: the median of each part in nanoseconds, and how often it was measured."""
    keys = F.from_json("configuration", "map<string, string>")
    each = rows.select("experiment", keys["place"].alias("place"), keys["part"].alias("part"), "value")
    each = each.groupBy("experiment", "place", "part").agg(F.median("value").alias("ns"), F.count("*").alias("n"))
    return each.groupBy("experiment", "place").agg(
        F.map_from_entries(F.collect_list(F.struct("part", "ns"))).alias("medians"),
        F.map_from_entries(F.collect_list(F.struct("part", "n"))).alias("samples"),
    )
