"""Pipelines as streams: the same declarations on streaming DataFrames, written through `foreachBatch`.

One query per table. A batch is settled as in a job, once for (query, batch), where the query is Spark's own identity of
a checkpoint; rows that came behind the watermark and copies that were dropped are taken from the query's own metrics
into `quality`.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ringcast.errors import RingcastError
from ringcast.spark.declaration import NothingToDo, Pipeline, find
from ringcast.spark.jobs import chosen_options, counted, written
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.pipelines.refine import of_families, refine
from ringcast.spark.quality import Expectation
from ringcast.spark.settling import Place, fetchable, note, settle, settle_small
from ringcast.spark.tables import bronze, upkeep
from ringcast.spark.tables.silver import Family
from ringcast.spark.tables.table import Table
from ringcast.spark.tags.outlet import Outlet

Settled = Callable[[DataFrame, Place], None]
Messages = DataFrame | Mapping[str, DataFrame]
"""Bronze messages as a stream: of everything, or one for each family by its name."""

_NOTED_EVERY = 50
"""Batches. Spark remembers the metrics of the last hundred."""


class NoStream(RingcastError):
    """A pipeline that only runs as a job."""

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        super().__init__(f"{pipeline} runs over what is there, not live; leave --stream away")


class QueryFailed(RingcastError):
    """A query on Spark ended by an error."""

    def __init__(self, query: str, reason: str) -> None:
        self.query = query
        self.reason = reason
        super().__init__(f"the query {query!r} failed: {reason}")


@dataclass(frozen=True)
class Sources:
    """Where a stream's rows come from. `tables` stand in for the lake's own tables, by the argument's name."""

    messages: Messages
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    publish: Outlet | None = None

    def of(self, family: Family) -> DataFrame:
        return self.messages if isinstance(self.messages, DataFrame) else self.messages[family.name]

    def all(self) -> DataFrame:
        if isinstance(self.messages, DataFrame):
            return self.messages
        first, *others = self.messages.values()
        for other in others:
            first = first.unionByName(other)
        return first


class Streams:
    """Queries that write to one lake. `checkpoints` is where they remember how far they came."""

    def __init__(
        self,
        lake: Lake,
        run: Run,
        checkpoints: str | os.PathLike[str],
        every_s: float | None = 1.0,
        watermark: str = "2 seconds",
    ) -> None:
        """`every_s` None reads what is there now and ends."""
        self.lake, self.run, self.watermark = lake, run, watermark
        self.queries: list[StreamingQuery] = []
        self._checkpoints, self._every_s = checkpoints, every_s
        self._noted: dict[str, int] = {}
        self._noting = threading.Lock()

    def start(
        self,
        name: str,
        messages: Messages,
        tables: Mapping[str, DataFrame] | None = None,
        publish: Outlet | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin to run a pipeline; what it writes goes out by `publish`, too, each batch once.

        Raises NoSuchPipeline, NoStream, NoSuchOption, NothingToDo, TagConflict when the outlet's tag is not made for
        what comes.
        """
        one = find(name)
        sources = Sources(messages, dict(tables or {}), dict(options or {}), publish)
        if publish is not None:
            publish.check()
        if one.stream is not None:
            one.stream(self, sources)
        elif one.job is not None:
            raise NoStream(name)
        else:
            self._start_declared(one, sources)

    def table(self, name: str, sources: Sources, declared: Table) -> DataFrame:
        """An input that does not stream, as it is now."""
        return sources.tables[name] if name in sources.tables else self.lake.read(declared)

    def clocks(self, sources: Sources) -> DataFrame:
        return self.table("clocks", sources, upkeep.CLOCKS)

    def _start_declared(self, one: Pipeline, sources: Sources) -> None:
        table = one.writes
        assert table is not None
        found = one.function(**self._inputs(one, sources), **chosen_options(one, sources.options))

        rows = written(one, found, self.run)
        if one.small and self.lake.fitting(table, rows).fits:
            self._start_small(one, table, found, sources.publish)
            return

        def write(batch: DataFrame, place: Place) -> None:
            rows = written(one, batch, self.run)
            once = rows.dropDuplicates(list(one.key)) if one.key else rows
            counts = settle(self.lake, table, once, one.expectations, self.run, replace(place, key=one.key))
            if sources.publish is not None:
                sources.publish.send(once.select(*table.columns), place.batch, self._checkpoints)
            numbers = counted(one, batch) if one.tally else {}
            if one.key:
                numbers["duplicated"] = numbers.get("duplicated", 0) + rows.count() - counts["rows"]
            note(self.lake, table.name, numbers, self.run, place)
            self.run.count({name: number for name, number in numbers.items() if number}, f"{one.name}: ")

        self.begin(one.name, found, write)

    def _start_small(self, one: Pipeline, table: Table, found: DataFrame, publish: Outlet | None) -> None:
        """A batch's rows, what they fail and the tallies are one fetch: any other job takes longer than so few rows."""

        def write(batch: DataFrame, place: Place) -> None:
            fetched = batch.toArrow()
            if not fetched.num_rows:
                return
            send = None
            if publish is not None:
                send = partial(publish.send_now, schema=table.schema, batch=place.batch, state=self._checkpoints)
            settle_small(self.lake, one, fetched, self.run, place, send)

        self.begin(one.name, fetchable(found, one, self.run), write, once=True)

    def _inputs(self, one: Pipeline, sources: Sources) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name, source in one.reads.items():
            if isinstance(source, Family):
                if one.scan is None:
                    given[name] = self._refined(source, sources)
                self.run.read(f"tags {source.pattern}", None)
            elif source is bronze.MESSAGES:
                given[name] = sources.all()
                self.run.read("tags **", None)
            else:
                given[name] = self.table(name, sources, source)
                if name in one.needs and given[name].isEmpty():
                    raise NothingToDo(one.name, one.needs[name])
                self.run.read(source.name, None)
        if one.scan is not None:
            given[one.scan] = of_families(sources.all(), one.families)
        if one.takes("watermark"):
            given["watermark"] = self.watermark
        return given

    def _refined(self, family: Family, sources: Sources) -> DataFrame:
        """A family's good rows. Those that do not decode are counted here, and put aside by `refine` alone."""
        counted = F.sum("lost").alias("lost"), F.count("rejected").alias("rejected")
        rows = refine(sources.of(family), self.clocks(sources), family, self.watermark).observe(family.name, *counted)
        return rows.where("rejected is null")

    def into(self, table: Table, expectations: Sequence[Expectation], key: Sequence[str] = ()) -> Settled:
        """With `key`, what a backfill brought before is left out."""

        def write(batch: DataFrame, place: Place) -> None:
            settle(self.lake, table, batch, expectations, self.run, replace(place, key=tuple(key)))

        return write

    def wait(self, timeout_s: float | None = None) -> None:
        """Until every query ended (those that read what is there now), then take their metrics."""
        for query in self.queries:
            query.awaitTermination(None if timeout_s is None else int(timeout_s))
        self.note()

    def stop(self) -> None:
        """End all queries; what they had read is committed or will be read again."""
        self.note()
        for query in self.queries:
            query.stop()

    def check(self) -> None:
        """Raises QueryFailed when one ended by an error."""
        for query in self.queries:
            if (failure := query.exception()) is not None:
                raise QueryFailed(query.name, str(failure).strip().splitlines()[0])

    def note(self) -> None:
        """Late and duplicated rows since the last call, and what was lost before and refused of those that a query
        refines by itself, into `quality`."""
        with self._noting:
            for query in self.queries:
                seen = {name: number for name, number in self._unnoted(query).items() if number}
                if seen:
                    note(self.lake, query.name, seen, self.run, Place())
                    self.run.count(seen, f"{query.name}: ")

    def _unnoted(self, query: StreamingQuery) -> Counter[str]:
        counts: Counter[str] = Counter()
        for progress in query.recentProgress:
            if progress.batchId <= self._noted.get(query.name, -1):
                continue
            self._noted[query.name] = progress.batchId
            for operator in progress.stateOperators:
                counts["late"] += operator.numRowsDroppedByWatermark
                counts["duplicated"] += int(operator.customMetrics.get("numDroppedDuplicateRows", 0))
            for observed in progress.observedMetrics.values():
                counts.update({name: number or 0 for name, number in observed.asDict().items()})
        return counts

    def begin(self, name: str, rows: DataFrame, write: Settled, once: bool = False) -> StreamingQuery:
        """A query of that name, whose batches `write` puts where they belong. With `once` it asks for a batch's rows
        once only, and they need not be held."""

        def each(batch: DataFrame, number: int) -> None:
            # Of the checkpoint: a restarted query goes on with it, and one whose checkpoint is gone begins anew.
            query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            assert query, "Spark names the query in every batch"
            place = Place(batch=(f"{name} {query}", number))
            # Every action on a batch would read the source and run the detection again.
            held = batch if once else batch.persist()
            try:
                write(held, place)
            finally:
                if not once:
                    held.unpersist()
            if number % _NOTED_EVERY == _NOTED_EVERY - 1:
                self.note()

        writer = (
            rows.writeStream.queryName(name)
            .option("checkpointLocation", os.path.join(self._checkpoints, name))
            .outputMode("append")
            .foreachBatch(each)
        )
        trigger = {"availableNow": True} if self._every_s is None else {"processingTime": f"{self._every_s} seconds"}
        query = writer.trigger(**trigger).start()
        self.queries.append(query)
        return query
