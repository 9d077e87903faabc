"""Experiment results as columns: `gold.training` has one value per row and the configuration as JSON.

A configuration is a flat object. `transport` is what was chosen, as it is written elsewhere (`lateral:r=4,c=3`),
`updates` how long it was looked at; the other keys are the environment it was chosen for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.spark.declaration import NothingToDo
from ringcast.spark.settling import as_declared
from ringcast.spark.tables.gold import TRAINING

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

RESULT = tuple(name for name in TRAINING.columns if name != "run_id")
"""What an experiment writes: the one schema for all of them."""

CHOICE = "transport"
NO_ENVIRONMENT = (CHOICE, "updates")


def of(results: DataFrame, experiment: str) -> DataFrame:
    return results.where(F.col("experiment") == experiment)


def opened(results: DataFrame) -> DataFrame:
    """With the configuration's keys in a map, and its `transport` apart from it."""
    keys = F.from_json("configuration", "map<string, string>")
    return results.withColumns(
        {
            "keys": F.map_filter(keys, lambda name, _: ~name.isin(*NO_ENVIRONMENT)),
            "transport": F.element_at(keys, CHOICE),
        }
    )


def taken_in(job: Job) -> DataFrame:
    """What experiments found: those in the lake, after taking in what the job was given. Raises NothingToDo."""
    if job.source is not None:
        rows = job.source.select(*RESULT).withColumn("run_id", F.lit(job.run.id))
        experiments = [row[0] for row in rows.select("experiment").distinct().collect()]
        written = job.lake.replace(TRAINING, as_declared(rows, TRAINING), job.run.id, experiments)
        job.run.wrote(TRAINING.name, written.rows)
    job.run.read(TRAINING.name, None)
    results = job.lake.read(TRAINING)
    if results.isEmpty():
        raise NothingToDo(job.pipeline.name, "there are no experiment results; give some with --input DIR (Parquet)")
    chosen = job.options.get("experiment")
    return results.where(F.col("experiment") == chosen) if chosen else results
