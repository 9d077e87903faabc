"""Experiment results as columns: `bronze.results` has one value per row and the configuration as JSON.

A configuration is a flat object. `transport` is what was chosen, as it is written elsewhere (`lateral:r=4,c=3`),
`updates` how long it was looked at; the other keys are the environment it was chosen for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.record.figures import FIGURE, MET, REFERENCE, TARGET
from ringcast.spark.declaration import NothingToDo
from ringcast.spark.settling import as_declared
from ringcast.spark.tables.bronze import RESULTS

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

_OURS = ("run_id", "measured_at")
RESULT = tuple(name for name in RESULTS.columns if name not in _OURS)
"""What an experiment writes: the one schema for all of them."""
EMPTY = "there are no experiment results; 'ringcast lab run' and 'ringcast bench' write some, or give them with --input"

CHOICE = "transport"
NO_ENVIRONMENT = (CHOICE, "updates")


def latest(results: DataFrame) -> DataFrame:
    """Of every experiment its last run: others may have been of another length, or of older code. What it concluded is
    in the lake too, as a run of its own, and is no measurement."""
    results = results.where(~F.col("metric").isin(FIGURE, REFERENCE, TARGET, MET))
    runs = results.groupBy("experiment", "run_id").agg(F.max("measured_at").alias("at"))
    last = runs.groupBy("experiment").agg(F.max_by("run_id", F.struct("at", "run_id")).alias("run_id"))
    return results.join(F.broadcast(last), ["experiment", "run_id"], "left_semi")


def opened(results: DataFrame) -> DataFrame:
    """With the configuration's keys in a map, and its `transport` apart from it."""
    keys = F.from_json("configuration", "map<string, string>")
    return results.withColumns(
        {
            "keys": F.map_filter(keys, lambda name, _: ~name.isin(*NO_ENVIRONMENT)),
            "transport": F.element_at(keys, CHOICE),
        }
    )


def take_in(job: Job) -> None:
    """What the job was given goes into the lake, but for runs that are there already."""
    if job.source is None:
        return
    given = job.source
    run = F.concat(F.translate("experiment", " ", "-"), F.lit(f"-{job.run.id}"))
    given = given.withColumns(
        {
            "run_id": F.coalesce(F.col("run_id"), run) if "run_id" in given.columns else run,
            "measured_at": F.col("measured_at") if "measured_at" in given.columns else F.current_timestamp(),
        }
    )
    known = job.lake.read(RESULTS).select("run_id").distinct()
    rows = as_declared(given.join(known, "run_id", "left_anti"), RESULTS)
    job.run.wrote(RESULTS.name, job.lake.append(RESULTS, rows, job.run.id).rows)


def taken_in(job: Job) -> DataFrame:
    """What experiments found: those in the lake, after taking in what the job was given. Raises NothingToDo."""
    take_in(job)
    job.run.read(RESULTS.name, None)
    results = job.lake.read(RESULTS)
    if results.isEmpty():
        raise NothingToDo(job.pipeline.name, EMPTY)
    chosen = job.options.get("experiment")
    return results.where(F.col("experiment") == chosen) if chosen else results
