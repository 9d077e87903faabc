"""Pipelines as streams: the same functions on streaming DataFrames, written through `foreachBatch`.

One query per table. A batch is settled as in a job, once for (query, batch); rows that came behind the watermark and
copies that were dropped are taken from the query's own metrics into `quality`.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.outlet import Outlet
from ringcast.spark.pipelines.constant import at_hand
from ringcast.spark.pipelines.fire import fire
from ringcast.spark.pipelines.fit import fit, points
from ringcast.spark.pipelines.fuse import Fusion, fuse, survivors, tally
from ringcast.spark.pipelines.ingest import ingest
from ringcast.spark.pipelines.qos import qos
from ringcast.spark.pipelines.refine import refine
from ringcast.spark.pipelines.results import RESULT
from ringcast.spark.pipelines.times import deduplicate, translate
from ringcast.spark.quality import GOLD, SILVER, Expectation
from ringcast.spark.settling import Place, as_declared, note, settle
from ringcast.spark.tables import bronze, gold, silver
from ringcast.spark.tables.table import Table

Settled = Callable[[DataFrame, Place], None]

_NOTED_EVERY = 50
"""Batches. Spark remembers the metrics of the last hundred."""


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
        self.lake, self.run = lake, run
        self.queries: list[StreamingQuery] = []
        self._checkpoints, self._every_s, self._watermark = checkpoints, every_s, watermark
        self._noted: dict[str, int] = {}
        self._noting = threading.Lock()

    def ingest(self, messages: DataFrame) -> StreamingQuery:
        """Messages of the source `ringcast` into bronze."""
        return self._start("ingest", ingest(messages), self._into(bronze.MESSAGES, ()))

    def refine(self, messages: DataFrame, clocks: DataFrame, family: silver.Family) -> StreamingQuery:
        refined = refine(messages, clocks, family, self._watermark)
        return self._start(f"refine-{family.name}", refined, self._into(family.table, SILVER))

    def qos(self, messages: DataFrame, clocks: DataFrame, window_s: float = 1.0) -> StreamingQuery:
        found = qos(deduplicate(translate(messages, clocks), self._watermark), window_s)
        rows = found.withColumn("run_id", F.lit(self.run.id))
        return self._start("qos", rows, self._into(gold.QOS, GOLD[gold.QOS.name]), small=True)

    def fuse(
        self,
        messages: DataFrame | Mapping[str, DataFrame],
        clocks: DataFrame,
        sensors: DataFrame,
        how: Fusion | None = None,
        publish: Outlet | None = None,
    ) -> StreamingQuery:
        """Bronze messages of all families to detections, which go out by `publish`, too, each batch once.

        One DataFrame of everything is read once for each family; a mapping has one for each by its name. Raises
        TagConflict when the outlet's tag is not made for detections.
        """
        if publish is not None:
            publish.check()
        infrared, pose, gps, video = self._refined(
            messages, clocks, silver.INFRARED, silver.POSE, silver.GPS, silver.VIDEO
        )
        ticks = fuse(infrared, pose, gps, video, sensors, how)

        def write(batch: DataFrame, place: Place) -> None:
            found = survivors(batch).withColumn("run_id", F.lit(self.run.id))
            settle(self.lake, gold.DETECTIONS, found, GOLD[gold.DETECTIONS.name], self.run, place)
            if publish is not None:
                publish.send(found, place.batch, self._checkpoints)
            counts = tally(batch).first()
            assert counts is not None
            numbers = {name: int(number) for name, number in counts.asDict().items()}
            note(self.lake, gold.DETECTIONS.name, numbers, self.run, place)
            self.run.count(numbers, "fuse: ")

        return self._start("fuse", ticks, write, small=True)

    def fire(
        self,
        messages: DataFrame | Mapping[str, DataFrame],
        clocks: DataFrame,
        sensors: DataFrame,
        how: Fusion | None = None,
    ) -> StreamingQuery:
        """Bronze messages of UAVs to fires."""
        infrared, pose, gps = self._refined(messages, clocks, silver.INFRARED, silver.POSE, silver.GPS)
        found = fire(infrared, pose, gps, sensors, how).withColumn("run_id", F.lit(self.run.id))
        return self._start("fire", found, self._into(gold.FIRES, GOLD.get(gold.FIRES.name, ())), small=True)

    def fit(self, results: DataFrame) -> StreamingQuery:
        """Experiment results into `gold.training` as they come, and the lines through all that are there into
        `gold.fits`."""

        def write(batch: DataFrame, place: Place) -> None:
            came = as_declared(batch.withColumn("run_id", F.lit(self.run.id)), gold.TRAINING)
            self.run.wrote(gold.TRAINING.name, self.lake.append(gold.TRAINING, came, self.run.id, place.batch).rows)
            found = fit(points(self.lake.read(gold.TRAINING))).withColumn("run_id", F.lit(self.run.id))
            written = self.lake.replace(gold.FITS, as_declared(found, gold.FITS), self.run.id)
            self.run.wrote(gold.FITS.name, written.rows)

        return self._start("fit", results.select(*RESULT), write)

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

    def _refined(
        self, messages: DataFrame | Mapping[str, DataFrame], clocks: DataFrame, *families: silver.Family
    ) -> list[DataFrame]:
        """Each family's good rows. Those that do not decode are counted here, and put aside by `refine` alone."""
        parts = []
        for family in families:
            own = messages if isinstance(messages, DataFrame) else messages[family.name]
            counted = F.sum("lost").alias("lost"), F.count("rejected").alias("rejected")
            rows = refine(own, clocks, family, self._watermark).observe(family.name, *counted)
            parts.append(rows.where("rejected is null"))
        return parts

    def _into(self, table: Table, expectations: Sequence[Expectation]) -> Settled:
        def write(batch: DataFrame, place: Place) -> None:
            settle(self.lake, table, batch, expectations, self.run, place)

        return write

    def _start(self, name: str, rows: DataFrame, write: Settled, small: bool = False) -> StreamingQuery:
        """`small` rows are results: they are fetched, and a batch without any is not written."""

        def each(batch: DataFrame, number: int) -> None:
            # Every action on a batch would read the source and run the detection again.
            held = at_hand(batch) if small else batch.persist()
            try:
                if not small or not held.isEmpty():
                    write(held, Place(batch=(query_id, number)))
            finally:
                held.unpersist()
            if number % _NOTED_EVERY == _NOTED_EVERY - 1:
                self.note()

        # Of the checkpoint, not of the query's start: a restarted query goes on with the numbers of the one before.
        query_id = f"{name}@{os.path.abspath(self._checkpoints)}"
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
