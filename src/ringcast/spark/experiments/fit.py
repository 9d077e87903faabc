"""`fit`: straight lines through measurements, with standard errors.

| model | of paper | y | x |
|---|---|---|---|
| latency | 002, T = a + b n/dt (1) | latency in ms | state changes per second |
| whetstone | 002, W = a + b n/dt (2) | Whetstones left | state changes per second |
| round trip by size | 000 and 001, "delays increase linearly" | mean round trip in us | bytes |
| round trip by hops, N B | 001, section 3.3 | what hops add to a round trip in us | hops |
| routers by size | 001, Figure 10 | the same | bytes |

Latency is fitted over runs that lost nothing: where changes are dropped the rest travels faster, and the line would
flatter (002, section IX.B). Least squares by Spark's own aggregates; standard errors from the residual sum of squares
with n - 2 degrees of freedom, null for two points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import own_job, own_stream
from ringcast.spark.experiments.results import RESULT, opened, taken_in
from ringcast.spark.experiments.round_trips import contrasts, round_trips
from ringcast.spark.settling import Place, as_declared
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.gold import FITS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job
    from ringcast.spark.streams import Sources, Streams

MODELS = {"latency": "latency_ms", "whetstone": "whetstones"}
"""What is fitted over rates, and the metric that holds it."""

BY_SIZE, BY_HOPS, ROUTERS = "round trip by size", "round trip by hops", "routers by size"
GROUP = ("model", "transport", "side", "load", "subscribers", "experiment", "proxy", "hops")


def points(results: DataFrame) -> DataFrame:
    """One row per point: the group, `rate` = n/dt or what else stands on the x axis, `value`, and how much was
    `lost`."""
    return by_rate(results).unionByName(by_distance(results))


def by_rate(results: DataFrame) -> DataFrame:
    """Paper 002: one row per run and model."""
    runs = opened(results).select(
        "configuration", "repetition", "run_id", "metric", "value", "transport", *(
            F.element_at("keys", key).cast(kind).alias(key)
            for key, kind in (("n", "double"), ("dt_s", "double"), ("subscribers", "int"), ("load", "string"),
                              ("side", "string"))
        )
    )  # fmt: skip
    run = ["configuration", "repetition", "run_id"]
    lost = runs.where("metric = 'lost'").select(*run, F.col("value").alias("lost"))
    models = F.create_map(*(F.lit(x) for model, metric in MODELS.items() for x in (metric, model)))
    values = runs.withColumn("model", models[F.col("metric")]).where("model is not null")
    return values.join(lost, run, "left").select(
        "model", F.coalesce("transport", F.lit("")).alias("transport"), F.coalesce("side", F.lit("")).alias("side"),
        F.coalesce("load", F.lit("")).alias("load"), F.coalesce("subscribers", F.lit(0)).alias("subscribers"),
        *_nothing("experiment", "proxy", "hops"), (F.col("n") / F.col("dt_s")).alias("rate"), "value",
        F.coalesce("lost", F.lit(0.0)).alias("lost"),
    )  # fmt: skip


def by_distance(results: DataFrame) -> DataFrame:
    """Papers 000 and 001: round trips over sizes, and over hops."""
    plain = F.col("scaling") == ""
    sizes = _on_axis(round_trips(results).where(plain), F.lit(BY_SIZE), "size", "mean_us")
    apart = contrasts(results).where(plain & (F.col("varied") == "hops") & (F.col("against") == "1"))
    by_hops = F.concat(F.lit(f"{BY_HOPS}, "), F.col("size").cast("string"), F.lit(" B"))
    far = apart.where("hops > 1")
    # One hop is where the others are measured from.
    near = far.withColumns({"hops": F.lit(1), "difference_us": F.lit(0.0)}).distinct()
    near = near.dropDuplicates(["experiment", "proxy", "subscribers", "transport", "size"])
    hops = _on_axis(far.unionByName(near), by_hops, "hops", "difference_us").withColumn("hops", F.lit(None).cast("int"))
    return sizes.unionByName(hops).unionByName(_on_axis(far, F.lit(ROUTERS), "size", "difference_us"))


def _on_axis(rows: DataFrame, model: Column, x: str, y: str) -> DataFrame:
    return rows.select(
        model.alias("model"), "transport", F.lit("").alias("side"), F.lit("").alias("load"), "subscribers",
        "experiment", "proxy", "hops", F.col(x).cast("double").alias("rate"), F.col(y).alias("value"),
        F.lit(0.0).alias("lost"),
    )  # fmt: skip


def _nothing(*names: str) -> list[Column]:
    return [F.lit(None).cast(FITS.schema[name].dataType).alias(name) for name in names]


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


@own_job("fit", "lines through measurements", reads={"results": RESULTS}, writes=FITS)
def fit_job(job: Job) -> None:
    found = fit(points(taken_in(job))).withColumn("run_id", F.lit(job.run.id))
    job.run.wrote(FITS.name, job.lake.replace(FITS, as_declared(found, FITS), job.run.id).rows)


@own_stream("fit")
def fit_stream(streams: Streams, sources: Sources) -> None:
    """Experiment results into `bronze.results` as they come, and the lines through all that are there into
    `gold.fits`."""

    def write(batch: DataFrame, place: Place) -> None:
        lake, run = streams.lake, streams.run
        # By the query, which goes on after a restart: what a run lost may come after what it measured.
        now = {"run_id": F.lit(place.batch[0] if place.batch else run.id), "measured_at": F.current_timestamp()}
        came = as_declared(batch.withColumns(now), RESULTS)
        run.wrote(RESULTS.name, lake.append(RESULTS, came, run.id, place.batch).rows)
        found = fit(by_rate(lake.read(RESULTS))).withColumn("run_id", F.lit(run.id))
        run.wrote(FITS.name, lake.replace(FITS, as_declared(found, FITS), run.id).rows)

    streams.begin("fit", sources.all().select(*RESULT), write)
