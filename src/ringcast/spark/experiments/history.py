"""The history of figures: what each `ringcast bench` and `ringcast lab run` concluded, beside the run before it.

Figures of one machine are compared with each other only, and quick runs with quick runs. How much memory it has makes
no other machine: figures from before that was said have it in no text.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ringcast.record.figures import FIGURE, MET, REFERENCE, TARGET
from ringcast.spark.declaration import pipeline
from ringcast.spark.experiments.results import EMPTY
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import BENCHMARKS

_RUN = ("experiment", "figure", "quick", "machine", "version", "unit", "run_id", "measured_at")


@pipeline(
    "history",
    "every figure of benchmarks and experiments, run after run",
    reads={"results": RESULTS},
    writes=BENCHMARKS,
    needs={"results": EMPTY},
)
def history(results: DataFrame) -> DataFrame:
    said = F.from_json("configuration", "map<string, string>")
    rows = results.where(F.col("metric").isin(FIGURE, REFERENCE, TARGET, MET)).withColumns(
        {"figure": F.element_at(said, "figure"), "quick": F.element_at(said, "quick") == "1"}
    )
    each = rows.where("figure is not null and measured_at is not null").groupBy(*_RUN).agg(
        *(F.max(F.when(F.col("metric") == metric, F.col("value"))).alias(metric + "_")
          for metric in (FIGURE, REFERENCE, TARGET, MET))
    )  # fmt: skip
    alike = Window.partitionBy(
        "experiment", "figure", "quick", F.regexp_replace("machine", r", [0-9.]+ GiB RAM", ""), "unit"
    )
    same = alike.orderBy("measured_at", "run_id")
    last = alike.orderBy(F.desc("measured_at"), F.desc("run_id"))
    value, before = F.col(f"{FIGURE}_"), F.lag(f"{FIGURE}_").over(same)
    return each.where(value.isNotNull()).select(
        F.col("measured_at").alias("event_time"), "experiment", "figure", "quick", "machine", "version",
        value.alias("value"), "unit", F.col(f"{REFERENCE}_").alias("reference"), F.col(f"{TARGET}_").alias("target"),
        (F.col(f"{MET}_") == 1).alias("met"), before.alias("before"),
        F.when(before != 0, value / before - 1).alias("change"),
        F.row_number().over(same).cast("long").alias("number"), (F.row_number().over(last) == 1).alias("latest"),
    )  # fmt: skip
