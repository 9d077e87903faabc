"""Pipelines as jobs on a lake: what a declaration says, done over a span of time or over all there is.

A job over a span computes whole partitions and replaces them, so that running it again, or after more data came, gives
what running it once on all of it would have given. When somebody else writes to these partitions meanwhile, the job is
done again on what is there then: nobody's rows are lost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.record.delta import State, TableChanged
from ringcast.spark.declaration import NothingToDo, Pipeline, find
from ringcast.spark.experiments.results import take_in
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.pipelines.refine import of_families
from ringcast.spark.quality import Expectation
from ringcast.spark.settling import Place, note, settle
from ringcast.spark.tables import bronze, upkeep
from ringcast.spark.tables.silver import Family
from ringcast.spark.tables.table import HOURLY, Table, hours
from ringcast.spark.tags.outlet import Outlet

_TRIES = 5


class NoSuchOption(RingcastError, LookupError):
    """The pipeline has no option of that name."""

    def __init__(self, pipeline: str, name: str, known: Sequence[str]) -> None:
        self.name = name
        super().__init__(f"{pipeline} has no option {name!r}; it has {', '.join(known) or 'none'}")


@dataclass
class Job:
    """A run's surroundings. `source` is what `ingest` reads, or results to take in; `options` the pipeline's own."""

    lake: Lake
    run: Run
    pipeline: Pipeline
    begin: dt.datetime | None = None
    end: dt.datetime | None = None
    source: DataFrame | None = None
    options: dict[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = lambda text: None
    _bases: dict[str, State] = field(default_factory=dict)

    @property
    def partitions(self) -> list[str] | None:
        """Whole hours that the span touches; None when there is no span."""
        return hours(self.begin, self.end) if self.begin and self.end else None

    def hold(self, *tables: Table) -> None:
        """Remember what these tables hold before their inputs are read: it is what the job replaces."""
        for table in (*tables, upkeep.QUARANTINE):
            self._bases.setdefault(table.name, self.lake.state(table))

    def read(self, table: Table, margin: dt.timedelta = dt.timedelta(0)) -> DataFrame:
        """The table's rows of the span, with so much more at either end."""
        wanted = None
        if self.begin and self.end and table.partition == HOURLY:
            # From the hours' own ends: they are done whole, wherever in them the span ends.
            first, end = self.begin.replace(minute=0, second=0, microsecond=0), self.end - dt.timedelta(microseconds=1)
            last = end.replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
            wanted = hours(first - margin, last + margin)
        self.run.read(table.name, wanted)
        return self.lake.read(table, wanted)

    def messages(self, margin: dt.timedelta, families: Sequence[Family] | None = None) -> DataFrame:
        """Bronze, of these families or all of it, with as much more as the clocks of nodes are apart: what they stamped
        an hour off is of the span."""
        widest = self.lake.read(upkeep.CLOCKS).agg(F.max(F.abs("offset_ns"))).first()
        apart = dt.timedelta(seconds=((widest and widest[0]) or 0) / 1e9)
        rows = self.read(bronze.MESSAGES, margin + apart)
        if families is None:
            return rows
        tags = [row.tag for row in rows.select("tag").distinct().collect()]
        return of_families(rows, families, tags)

    def within(self, rows: DataFrame, clock: str = "event_time") -> DataFrame:
        """Rows whose hour is one of those to replace."""
        if self.partitions is None:
            return rows
        hour = F.date_format(clock, "yyyy-MM-dd'T'HH")
        return rows.where(hour.isin(self.partitions))

    def write(self, table: Table, rows: DataFrame, expectations: Sequence[Expectation]) -> dict[str, int]:
        self.say(f"writing {table.name}")
        place = Place(self.partitions, bases=self._bases)
        return settle(self.lake, table, rows, expectations, self.run, place)


def run(
    name: str,
    lake: Lake,
    begin: dt.datetime | None = None,
    end: dt.datetime | None = None,
    source: DataFrame | None = None,
    options: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
    publish: Outlet | None = None,
) -> Run:
    """Run a pipeline over a span, or over all there is; what it writes goes out by `publish`, too.

    Raises NoSuchPipeline, NoSuchOption and what the pipeline raises; TableChanged when others did not let it finish.
    """
    one = find(name)
    if publish is not None:
        publish.check()
    for attempt in range(1, _TRIES + 1):
        try:
            with Run(lake, name) as this:
                job = Job(lake, this, one, begin, end, source, dict(options or {}), say)
                if one.job is not None:
                    one.job(job)
                else:
                    _declared(job, publish)
            return this
        except TableChanged:
            if attempt == _TRIES:
                raise
            say("somebody else wrote meanwhile; once more")
    raise AssertionError("unreachable")


def _declared(job: Job, publish: Outlet | None) -> None:
    one = job.pipeline
    assert one.writes is not None
    job.hold(one.writes)
    if bronze.RESULTS in one.tables:
        take_in(job)
    found = one.function(**_inputs(job), **chosen_options(one, job.options))
    found = found.persist() if one.tally or publish else found
    try:
        seen = Observation()
        rows = job.within(written(one, found, job.run), one.clock).observe(seen, F.count("*").alias("rows"))
        rows = rows.dropDuplicates(list(one.key)) if one.key else rows
        counts = job.write(one.writes, rows, one.expectations)
        if publish is not None:
            job.say(f"publishing on {publish.tag}")
            publish.send(rows.select(*one.writes.columns))
        numbers = counted(one, job.within(found, one.clock)) if one.tally else {}
        if one.key:
            # Spark does not even look at rows of a plan that it knows to be empty.
            twice = seen.get["rows"] - counts["rows"] if counts["rows"] else 0
            numbers["duplicated"] = numbers.get("duplicated", 0) + twice
        if numbers:
            note(job.lake, one.writes.name, numbers, job.run, Place())
            job.run.count({name: number for name, number in numbers.items() if number}, f"{one.name}: ")
    finally:
        found.unpersist()


def _inputs(job: Job) -> dict[str, DataFrame]:
    one, margin = job.pipeline, dt.timedelta(seconds=job.pipeline.margin_s)
    given: dict[str, DataFrame] = {}
    for name, source in one.reads.items():
        if isinstance(source, Family):
            if one.scan is None:
                given[name] = job.read(source.table, margin)
        elif source is bronze.MESSAGES:
            given[name] = job.messages(margin)
        else:
            given[name] = job.read(source, margin)
            if name in one.needs and given[name].isEmpty():
                raise NothingToDo(one.name, one.needs[name])
    if one.scan is not None:
        given[one.scan] = job.messages(margin, one.families)
    return given


def written(one: Pipeline, found: DataFrame, run: Run) -> DataFrame:
    """The rows of a function's result, with the run's id where the table has it."""
    assert one.writes is not None
    rows = found
    if one.each is not None or one.tally:
        rest = [name for name in found.columns if name != one.each and name not in one.tally]
        rows = found.select(*rest, *([F.inline(one.each)] if one.each is not None else []))
    return rows.withColumn("run_id", F.lit(run.id)) if "run_id" in one.writes.columns else rows


def counted(one: Pipeline, found: DataFrame) -> dict[str, int]:
    """The sums of what a function's result tallies."""
    row = found.agg(*(F.sum(name).alias(name) for name in one.tally)).first()
    return {} if row is None else {name: int(number or 0) for name, number in row.asDict().items()}


def chosen_options(one: Pipeline, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given. Raises NoSuchOption."""
    for name in given:
        if name not in one.options:
            raise NoSuchOption(one.name, name, list(one.options))
    return dict(given)
