"""Pipelines as jobs on a lake: which tables they read and write, over which span of time.

A job over a span computes whole partitions and replaces them, so that running it again, or after more data came, gives
what running it once on all of it would have given. The functions that compute are in `pipelines`; here is only the way
from table to table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.outlet import Outlet
from ringcast.spark.pipelines import fire as fires
from ringcast.spark.pipelines import fit as fits
from ringcast.spark.pipelines import fuse as fusing
from ringcast.spark.pipelines import qos as service
from ringcast.spark.pipelines import train as training
from ringcast.spark.pipelines.ingest import ingest
from ringcast.spark.pipelines.refine import of_pattern, refine
from ringcast.spark.pipelines.results import RESULT
from ringcast.spark.pipelines.times import deduplicate, translate
from ringcast.spark.quality import GOLD, SILVER
from ringcast.spark.settling import Place, as_declared, note, settle
from ringcast.spark.tables import bronze, gold, silver, upkeep
from ringcast.spark.tables.table import Table, hours


class NoSuchPipeline(RingcastError, LookupError):
    """No pipeline has that name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no pipeline {name!r}; there are {', '.join(JOBS)}")


class NothingToDo(RingcastError):
    """A pipeline was given no input, and what to do about it."""

    def __init__(self, pipeline: str, advice: str) -> None:
        self.pipeline = pipeline
        self.advice = advice
        super().__init__(f"{pipeline} has nothing to work on: {advice}")


@dataclass
class Job:
    """A run's surroundings. `source` is what `ingest` reads; `options` are the pipeline's own."""

    lake: Lake
    run: Run
    begin: dt.datetime | None = None
    end: dt.datetime | None = None
    source: DataFrame | None = None
    options: dict[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = lambda text: None

    @property
    def partitions(self) -> list[str] | None:
        """Whole hours that the span touches; None when there is no span."""
        return hours(self.begin, self.end) if self.begin and self.end else None

    def read(self, table: Table, margin: dt.timedelta = dt.timedelta(0)) -> DataFrame:
        """The table's rows of the span, with so much more at either end."""
        wanted = hours(self.begin - margin, self.end + margin) if self.begin and self.end else None
        self.run.read(table.name, wanted)
        return self.lake.read(table, wanted)

    def within(self, rows: DataFrame) -> DataFrame:
        """Rows whose hour is one of those to replace."""
        if self.partitions is None:
            return rows
        hour = F.date_format("event_time", "yyyy-MM-dd'T'HH")
        return rows.where(hour.isin(self.partitions))

    def write(self, table: Table, rows: DataFrame) -> dict[str, int]:
        self.say(f"writing {table.name}")
        expectations = GOLD.get(table.name, ()) if not table.name.startswith("silver.") else SILVER
        return settle(self.lake, table, rows, expectations, self.run, Place(self.partitions))


def run(
    name: str,
    lake: Lake,
    begin: dt.datetime | None = None,
    end: dt.datetime | None = None,
    source: DataFrame | None = None,
    options: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Run:
    """Run a pipeline over a span, or over all there is. Raises NoSuchPipeline and what the pipeline raises."""
    if name not in JOBS:
        raise NoSuchPipeline(name)
    with Run(lake, name) as this:
        JOBS[name](Job(lake, this, begin, end, source, options or {}, say))
    return this


def _ingest(job: Job) -> None:
    if job.source is None:
        raise NothingToDo("ingest", "give it a recording (--input DIR) or live tags (--tag PATTERN)")
    rows = ingest(job.source)
    if job.begin and job.end:
        rows = job.within(rows)
        settle(job.lake, bronze.MESSAGES, rows, (), job.run, Place(job.partitions))
    else:
        # Bronze only grows; the same recording twice is not twice as many messages.
        old = job.lake.read(bronze.MESSAGES).select(*bronze.KEY)
        new = rows.join(old, list(bronze.KEY), "left_anti").select(*bronze.MESSAGES.columns)
        job.run.wrote(bronze.MESSAGES.name, job.lake.append(bronze.MESSAGES, new, job.run.id).rows)


def _refine(job: Job) -> None:
    clocks = job.lake.read(upkeep.CLOCKS)
    widest = clocks.agg(F.max(F.abs("offset_ns"))).first()
    margin = dt.timedelta(seconds=((widest and widest[0]) or 0) / 1e9 + 1)
    messages = job.read(bronze.MESSAGES, margin)
    chosen = job.options.get("families") or [n for n in silver.FAMILIES if n != silver.RECORDS.name]
    for name in chosen:
        family = silver.FAMILIES[name]
        job.say(f"refining {name}")
        counts = job.write(family.table, job.within(refine(messages, clocks, family)))
        came = job.within(translate(messages.where(of_pattern(F.col("tag"), family.pattern)), clocks)).count()
        more = {"duplicated": came - counts["rows"]}
        note(job.lake, family.table.name, more, job.run, Place())
        job.run.count({k: v for k, v in more.items() if v}, f"{family.table.name}: ")


def _sensed(job: Job, *families: silver.Family) -> list[DataFrame]:
    second = dt.timedelta(seconds=1)
    return [job.read(family.table, second) for family in families]


def _sensors(job: Job) -> DataFrame:
    sensors = job.lake.read(upkeep.SENSORS)
    if sensors.isEmpty():
        raise NothingToDo(job.run.pipeline, "the table sensors is empty; it says where cameras are and how they look")
    return sensors


def _fuse(job: Job) -> None:
    outlet = Outlet(tag, job.options.get("socket")) if (tag := job.options.get("publish")) else None
    if outlet is not None:
        outlet.check()
    infrared, pose, gps, video = _sensed(job, silver.INFRARED, silver.POSE, silver.GPS, silver.VIDEO)
    ticks = job.within(fusing.fuse(infrared, pose, gps, video, _sensors(job))).persist()
    job.say("fusing")
    try:
        found = fusing.survivors(ticks).withColumn("run_id", F.lit(job.run.id))
        job.write(gold.DETECTIONS, found)
        if outlet is not None:
            job.say(f"publishing on {outlet.tag}")
            outlet.send(found)
        counts = fusing.tally(ticks).first()
        assert counts is not None
        numbers = {name: int(number) for name, number in counts.asDict().items()}
        note(job.lake, gold.DETECTIONS.name, numbers, job.run, Place())
        job.run.count(numbers, "fuse: ")
    finally:
        ticks.unpersist()


def _fire(job: Job) -> None:
    infrared, pose, gps = _sensed(job, silver.INFRARED, silver.POSE, silver.GPS)
    found = job.within(fires.fire(infrared, pose, gps, _sensors(job)))
    job.write(gold.FIRES, found.withColumn("run_id", F.lit(job.run.id)))


def _qos(job: Job) -> None:
    messages = deduplicate(translate(job.read(bronze.MESSAGES), job.lake.read(upkeep.CLOCKS)))
    window_s = float(job.options.get("window_s", service.WINDOW_S))
    deadline_ns = int(job.options.get("deadline_ns", service.DEADLINE_NS))
    found = job.within(service.qos(messages, window_s, deadline_ns))
    job.write(gold.QOS, found.withColumn("run_id", F.lit(job.run.id)))


def _results(job: Job) -> DataFrame:
    """What experiments found: those in the lake, after taking in what the job was given."""
    if job.source is not None:
        rows = job.source.select(*RESULT).withColumn("run_id", F.lit(job.run.id))
        experiments = [row[0] for row in rows.select("experiment").distinct().collect()]
        written = job.lake.replace(gold.TRAINING, as_declared(rows, gold.TRAINING), job.run.id, experiments)
        job.run.wrote(gold.TRAINING.name, written.rows)
    job.run.read(gold.TRAINING.name, None)
    results = job.lake.read(gold.TRAINING)
    if results.isEmpty():
        raise NothingToDo(job.run.pipeline, "there are no experiment results; give some with --input DIR (Parquet)")
    chosen = job.options.get("experiment")
    return results.where(F.col("experiment") == chosen) if chosen else results


def _fit(job: Job) -> None:
    found = fits.fit(fits.points(_results(job))).withColumn("run_id", F.lit(job.run.id))
    job.run.wrote(gold.FITS.name, job.lake.replace(gold.FITS, as_declared(found, gold.FITS), job.run.id).rows)


def _train(job: Job) -> None:
    metric = str(job.options.get("metric", "relate2"))
    splits = int(job.options.get("splits") or training.SPLITS)
    trained = training.train(_results(job), metric, splits=splits, say=job.say)
    path = Path(job.options.get("model") or job.lake.path / "models" / f"{metric}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(msgspec.json.encode({**trained.model, "run_id": job.run.id}))
    draft.replace(path)
    job.run.wrote(str(path), 1)
    job.run.count({"environments": trained.environments, f"held out in {splits} splits": trained.held_out})
    shares = {**trained.shares, "always the same": trained.constants}
    job.run.count({f"{name}: percent within 5 %": round(100 * training.mean(of)) for name, of in shares.items()})
    job.run.count({f"best is {transport}": number for transport, number in trained.wins.items()})


JOBS: dict[str, Callable[[Job], None]] = {
    "ingest": _ingest,
    "refine": _refine,
    "fuse": _fuse,
    "fire": _fire,
    "qos": _qos,
    "fit": _fit,
    "train": _train,
}
