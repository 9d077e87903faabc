"""`planes`: latency as T = a + b n + c/dt beside paper 002's T = a + b n/dt, with R squared of both.

The paper holds that n/dt alone decides. If it does, runs of equal n/dt and different n are equally late, and the plane
explains no more than the line. Least squares by Spark's own aggregates, over runs that lost nothing; `pairs` counts the
pairs of runs with equal n/dt and another n, and `apart` is how far their latencies are apart, as a share of the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import own_job
from ringcast.spark.experiments.results import opened, taken_in
from ringcast.spark.settling import as_declared
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.columns import DOUBLE, INT, LONG, STRING, columns, join, optional
from ringcast.spark.tables.gold import RUN
from ringcast.spark.tables.table import Table

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

GROUP = ("transport", "load", "subscribers")

PLANES = Table(
    "gold.planes",
    "planes through latencies: T = a + b n + c/dt, beside the line T = a + b n/dt",
    join(
        columns(transport=STRING, load=STRING, subscribers=INT, points=LONG),
        optional(a=DOUBLE, b=DOUBLE, c=DOUBLE, r2=DOUBLE, r2_line=DOUBLE, apart=DOUBLE),
        columns(pairs=LONG),
        RUN,
    ),
)


def runs(results: DataFrame) -> DataFrame:
    """One row per run that lost nothing: the group, `n`, `per_s` = 1/dt and `value` in ms."""
    keys = (("n", "double"), ("dt_s", "double"), ("subscribers", "int"), ("load", "string"))
    wide = opened(results).select(
        "configuration", "repetition", "run_id", "metric", "value", "transport",
        *(F.element_at("keys", key).cast(kind).alias(key) for key, kind in keys),
    )  # fmt: skip
    by_run = ("configuration", "repetition", "run_id")
    lossy = wide.where("metric = 'lost' and value > 0").select(*by_run)
    return (
        wide.where("metric = 'latency_ms' and n is not null and dt_s > 0")
        .join(lossy, list(by_run), "left_anti")
        .select(
            F.coalesce("transport", F.lit("")).alias("transport"), F.coalesce("load", F.lit("")).alias("load"),
            F.coalesce("subscribers", F.lit(0)).alias("subscribers"), "n", (1 / F.col("dt_s")).alias("per_s"), "value",
        )
    )  # fmt: skip


def planes(found: DataFrame) -> DataFrame:
    """The columns of `gold.planes` but `run_id`."""
    sums = found.groupBy(*GROUP).agg(
        F.count("*").alias("points"),
        F.avg("n").alias("_n"), F.avg("per_s").alias("_f"), F.avg("value").alias("_y"),
        F.var_pop("n").alias("_nn"), F.var_pop("per_s").alias("_ff"), F.covar_pop("n", "per_s").alias("_nf"),
        F.covar_pop("n", "value").alias("_ny"), F.covar_pop("per_s", "value").alias("_fy"),
        F.var_pop("value").alias("_yy"),
        F.regr_r2("value", F.col("n") * F.col("per_s")).alias("r2_line"),
    )  # fmt: skip
    determinant = F.col("_nn") * F.col("_ff") - F.col("_nf") ** 2
    # Runs of one n, or of one period, say nothing of the other.
    solvable = F.when(determinant > 1e-12 * F.col("_nn") * F.col("_ff"), determinant)
    b = (F.col("_ny") * F.col("_ff") - F.col("_fy") * F.col("_nf")) / solvable
    c = (F.col("_fy") * F.col("_nn") - F.col("_ny") * F.col("_nf")) / solvable
    solved = sums.withColumns({"b": b, "c": c})
    solved = solved.withColumns(
        {
            "a": F.col("_y") - F.col("b") * F.col("_n") - F.col("c") * F.col("_f"),
            "r2": F.when(F.col("_yy") > 0, (F.col("b") * F.col("_ny") + F.col("c") * F.col("_fy")) / F.col("_yy")),
        }
    )
    return solved.join(_pairs(found), list(GROUP), "left").select(
        *GROUP, "points", "a", "b", "c", "r2", "r2_line", "apart", F.coalesce("pairs", F.lit(0)).alias("pairs")
    )


def _pairs(found: DataFrame) -> DataFrame:
    """How far apart runs of equal n/dt and different n are."""
    cells = found.groupBy(*GROUP, "n", "per_s").agg(F.avg("value").alias("value"))
    rates = cells.withColumn("rate", F.round(F.col("n") * F.col("per_s"), 6))
    one, other = rates.alias("one"), rates.alias("other")
    same = [F.col(f"one.{key}") == F.col(f"other.{key}") for key in (*GROUP, "rate")]
    joined = one.join(other, [*same, F.col("one.n") < F.col("other.n")])
    first, second = F.col("one.value"), F.col("other.value")
    share = F.abs(first - second) / ((first + second) / 2)
    return joined.groupBy(*(F.col(f"one.{key}").alias(key) for key in GROUP)).agg(
        F.count("*").alias("pairs"), F.avg(share).alias("apart")
    )


@own_job("planes", "latency by n and by period, beside n/dt alone", reads={"results": RESULTS}, writes=PLANES)
def planes_job(job: Job) -> None:
    found = planes(runs(taken_in(job))).withColumn("run_id", F.lit(job.run.id))
    job.run.wrote(PLANES.name, job.lake.replace(PLANES, as_declared(found, PLANES), job.run.id).rows)
