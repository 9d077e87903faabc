"""`fit`: the lines of paper 002, T = a + b n/dt (1) and W = a + b n/dt (2), with standard errors.

n/dt is how many state changes there are per second. Latency is fitted over runs that lost nothing: where changes are
dropped the rest travels faster, and the line would flatter (section IX.B there). Least squares by Spark's own
aggregates; standard errors from the residual sum of squares with n - 2 degrees of freedom, null for two points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import own_job, own_stream
from ringcast.spark.pipelines.results import RESULT, opened, taken_in
from ringcast.spark.settling import Place, as_declared
from ringcast.spark.tables.gold import FITS, TRAINING

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job
    from ringcast.spark.streams import Sources, Streams

MODELS = {"latency": "latency_ms", "whetstone": "whetstones"}
"""What is fitted, and the metric that holds it."""

GROUP = ("model", "transport", "side", "load", "subscribers")


def points(results: DataFrame) -> DataFrame:
    """One row per run and model: the group, `rate` = n/dt, `value` and how much the run `lost`."""
    runs = opened(results).select(
        "configuration", "repetition", "metric", "value", "transport", *(
            F.element_at("keys", key).cast(kind).alias(key)
            for key, kind in (("n", "double"), ("dt_s", "double"), ("subscribers", "int"), ("load", "string"),
                              ("side", "string"))
        )
    )  # fmt: skip
    lost = runs.where("metric = 'lost'").select("configuration", "repetition", F.col("value").alias("lost"))
    models = F.create_map(*(F.lit(x) for model, metric in MODELS.items() for x in (metric, model)))
    values = runs.withColumn("model", models[F.col("metric")]).where("model is not null")
    return values.join(lost, ["configuration", "repetition"], "left").select(
        "model", F.coalesce("transport", F.lit("")).alias("transport"), F.coalesce("side", F.lit("")).alias("side"),
        F.coalesce("load", F.lit("")).alias("load"), F.coalesce("subscribers", F.lit(0)).alias("subscribers"),
        (F.col("n") / F.col("dt_s")).alias("rate"), "value", F.coalesce("lost", F.lit(0.0)).alias("lost"),
    )  # fmt: skip


def fit(runs: DataFrame) -> DataFrame:
    """The columns of `gold.fits` but `run_id`, from `points`."""
    whole = runs.where("rate is not null and (model <> 'latency' or lost = 0)")
    sums = whole.groupBy(*GROUP).agg(
        F.count("*").alias("points"),
        F.regr_intercept("value", "rate").alias("a"),
        F.regr_slope("value", "rate").alias("b"),
        F.regr_r2("value", "rate").alias("r2"),
        F.regr_sxx("value", "rate").alias("_sxx"),
        F.regr_syy("value", "rate").alias("_syy"),
        F.regr_sxy("value", "rate").alias("_sxy"),
        F.avg("rate").alias("_mean"),
    )
    residual = F.greatest(F.col("_syy") - F.col("_sxy") ** 2 / F.col("_sxx"), F.lit(0.0))
    variance = F.when(F.col("points") > 2, residual / (F.col("points") - 2))
    return sums.where("a is not null").select(
        *GROUP, "points", "a", "b",
        F.sqrt(variance * (1 / F.col("points") + F.col("_mean") ** 2 / F.col("_sxx"))).alias("a_error"),
        F.sqrt(variance / F.col("_sxx")).alias("b_error"),
        "r2",
    )  # fmt: skip


@own_job("fit", "lines through measurements", reads={"results": TRAINING}, writes=FITS)
def fit_job(job: Job) -> None:
    found = fit(points(taken_in(job))).withColumn("run_id", F.lit(job.run.id))
    job.run.wrote(FITS.name, job.lake.replace(FITS, as_declared(found, FITS), job.run.id).rows)


@own_stream("fit")
def fit_stream(streams: Streams, sources: Sources) -> None:
    """Experiment results into `gold.training` as they come, and the lines through all that are there into
    `gold.fits`."""

    def write(batch: DataFrame, place: Place) -> None:
        lake, run = streams.lake, streams.run
        came = as_declared(batch.withColumn("run_id", F.lit(run.id)), TRAINING)
        run.wrote(TRAINING.name, lake.append(TRAINING, came, run.id, place.batch).rows)
        found = fit(points(lake.read(TRAINING))).withColumn("run_id", F.lit(run.id))
        run.wrote(FITS.name, lake.replace(FITS, as_declared(found, FITS), run.id).rows)

    streams.begin("fit", sources.all().select(*RESULT), write)
