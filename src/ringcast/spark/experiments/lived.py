"""`lived`: what choices of transports cost in real meshes, as results that `train` learns from.

Daemons tell it on `@ringcast/<node>/choices`: `ringcast pipeline run ingest --stream --tag '@ringcast/*/choices'`
brings it into the lake, or `ringcast record` keeps it until `ingest` does. `train` takes it in by itself. An
environment is never met twice exactly, so its numbers are rounded to steps of `STEP`: looks at different transports in
nearly the same environment are compared, and repetitions of one are averaged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ringcast.adapt.names import called
from ringcast.spark.declaration import NothingToDo, own_job
from ringcast.spark.settling import as_declared
from ringcast.spark.tables.bronze import MESSAGES, RESULTS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

EXPERIMENT = "lived"
STEP = 1.5
NUMBERS = ("receivers", "loss_percent", "burst", "rate_hz", "payload_bytes", "delay_us", "bandwidth_mbit")
COSTS = {"relate2": "ms", "latency_mean": "ms", "delivered": "%"}
_LOOK = ("machine", "configuration", "measured_at")
LEAST_LOSS = 0.01
"""Percent; less is none."""
_TOLD = T.StructType(
    [
        T.StructField("taken_ns", T.LongType()), T.StructField("transport", T.StringType()),
        T.StructField("messages", T.LongType()),
        *(T.StructField(name, T.DoubleType()) for name in (*NUMBERS, *COSTS)),
    ]
)  # fmt: skip


def lived(messages: DataFrame) -> DataFrame:
    """Rows of `bronze.results`, from recorded messages. Looks without clocks to measure by have no latency."""
    told = messages.where(F.col("tag").rlike("^@ringcast/[^/]+/choices$")).select(
        "node", F.from_json(F.col("payload").cast("string"), _TOLD).alias("t")
    )  # fmt: skip
    # Experiments have other names, and learning from both needs the same ones.
    named = F.udf(lambda transport: called(transport), "string")
    told = told.where("t.messages > 0").withColumn("called", named("t.transport")).where("called <> ''")
    keys = [F.lit("real"), F.lit("1"), F.lit("transport"), F.col("called")]
    for name in NUMBERS:
        keys += [F.lit(name), _rounded(F.col(f"t.{name}"), name)]
    looks = told.withColumn("configuration", F.to_json(F.create_map(*keys)))
    order = Window.partitionBy("configuration").orderBy("t.taken_ns")
    numbered = looks.withColumn("repetition", F.row_number().over(order) - 1)
    each = F.explode(F.array(*(
        F.struct(F.lit(name).alias("metric"), F.col(f"t.{name}").alias("value"), F.lit(unit).alias("unit"))
        for name, unit in COSTS.items()
    )))  # fmt: skip
    found = numbered.select("node", "t", "configuration", "repetition", each.alias("one"))
    return found.where("one.value > 0").select(
        F.lit(EXPERIMENT).alias("experiment"), "configuration", "repetition", "one.metric", "one.value", "one.unit",
        F.col("node").alias("machine"), F.lit("").alias("version"),
        F.timestamp_micros(F.expr("t.taken_ns div 1000")).alias("measured_at"),
    )  # fmt: skip


def _rounded(value: Column, name: str) -> Column:
    """To the nearest power of STEP, as text; receivers are counted."""
    if name == "receivers":
        return value.cast("int").cast("string")
    step = F.pow(F.lit(STEP), F.round(F.log(F.greatest(value, F.lit(1e-3))) / math.log(STEP)))
    short = F.round(step, 4).cast("string")
    return F.when(value < LEAST_LOSS, F.lit("0.0")).otherwise(short) if name == "loss_percent" else short


@own_job(
    "lived", "what choices of transports cost, as results to learn from",
    reads={"messages": MESSAGES, "results": RESULTS},
)  # fmt: skip
def lived_job(job: Job) -> None:
    if not take_in_lived(job):
        how = "'ringcast record' of '@ringcast/*/choices' and 'ringcast pipeline run ingest' do that"
        raise NothingToDo("lived", f"the lake has no choices that are not results yet; {how}")


def take_in_lived(job: Job) -> bool:
    """What is recorded and is no result yet becomes one; whether there was any. Recordings of several nodes come in any
    order, so a look is known by its node, its configuration and its time."""
    known = job.lake.read(RESULTS).where(F.col("experiment") == EXPERIMENT)
    rows = lived(job.lake.read(MESSAGES)).join(known.select(*_LOOK).distinct(), list(_LOOK), "left_anti")
    job.run.read(MESSAGES.name, None)
    rows = as_declared(rows.withColumn("run_id", F.lit(f"{EXPERIMENT}-{job.run.id}")), RESULTS)
    if rows.isEmpty():
        return False
    job.run.wrote(RESULTS.name, job.lake.append(RESULTS, rows, job.run.id).rows)
    return True
