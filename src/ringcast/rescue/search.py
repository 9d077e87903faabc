"""A search and rescue on Spark, live: tags of a mesh in, survivors out on a tag, and at the end what became of it.

    tags -> fuse -> gold.detections and the tag          while it runs
    recording -> bronze -> silver, gold.qos              afterwards
    truth -> score                                       last of all: nothing before has seen it

One object for one mission; whoever shows it knows nothing of Spark.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ringcast.rescue import Mission, Settings, bronze_rows, truth_rows
from ringcast.rescue.pipelines.score import matched, score
from ringcast.rescue.report import write_report
from ringcast.rescue.tables import DETECTIONS, SENSORS, TRUTH
from ringcast.rescue.trials import declared
from ringcast.spark import jobs
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.page import Section
from ringcast.spark.session import opened
from ringcast.spark.streams import Streams
from ringcast.spark.tables import upkeep
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tags.frames import recorded
from ringcast.spark.tags.outlet import Outlet

WATERMARK = "400 milliseconds"
"""On one machine, and within a mesh of its own, what is later than that was held up by somebody; it is counted."""

_TICK_NS = 100_000_000
_MADE_UP_S, _BATCHES = 3.0, 6
_SHARED = Path("/dev/shm")
"""A checkpoint of a demonstration need not outlive the machine, and each batch writes some twenty files of it."""
_SOCKET_ROOM = 50
_TELEMETRY = "@ringcast/*/channels"


class Concluded(msgspec.Struct, frozen=True):
    """How it went. `detections` are those of the seconds that were judged, `written` all in the table; `counts` are
    those of the fusion; `channels` the last that each node told of its own."""

    detections: int
    written: int
    ticks: int
    survivors: int
    survivors_found: int
    recall: float
    precision: float
    error_m: float
    counts: dict[str, int]
    channels: list[dict[str, Any]]
    page: str


class Search:
    """`scratch` is for what nobody needs afterwards. Raises NoJava."""

    def __init__(self, lake: Path, scratch: Path, settings: Settings, socket: str, tag: str) -> None:
        self._session = opened("local[2]", app="search and rescue", settings=_settings(scratch))
        self._spark = self._session.__enter__()
        self._lake = Lake(self._spark, lake)
        self._mission = Mission(settings)
        self._socket, self._tag, self._scratch = socket, tag, scratch
        self._run = Run(self._lake, "search")
        self._memory = tempfile.TemporaryDirectory(
            prefix="ringcast-demo-", dir=_SHARED if _SHARED.is_dir() else scratch
        )
        self._streams = Streams(self._lake, self._run, self._memory.name, every_s=0.0, watermark=WATERMARK)

    def __enter__(self) -> Search:
        self._run.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.__exit__(None, None, None)
        self._memory.cleanup()

    def start(self) -> None:
        """Begin to read, from the first message on that the rings hold. Raises TagConflict."""
        self._lake.replace(SENSORS, declared(self._spark, self._mission.calibration(), SENSORS), self._run.id)
        clocks = declared(self._spark, [], upkeep.CLOCKS)
        self._rehearse(clocks)
        self._streams.start("fuse", self._tags(), {"clocks": clocks}, Outlet(self._tag, self._socket))

    def _rehearse(self, clocks: DataFrame) -> None:
        """The same query on made-up seconds, into a lake that is thrown away: Java compiles it and workers load what
        they need before anybody waits for a detection."""
        made = declared(
            self._spark, bronze_rows(Mission(replace(self._mission.settings, seconds=_MADE_UP_S))), MESSAGES
        )
        place = self._scratch / "rehearsal"
        made.repartitionByRange(_BATCHES, "event_ns").write.parquet(str(place / "in"))
        messages = self._spark.readStream.schema(MESSAGES.schema).option("maxFilesPerTrigger", 1)
        lake = Lake(self._spark, place / "lake")
        tables = {"clocks": clocks, "sensors": self._lake.read(SENSORS)}
        streams = Streams(lake, Run(lake, "rehearsal"), place / "checkpoints", every_s=None, watermark=WATERMARK)
        streams.start("fuse", messages.parquet(str(place / "in")), tables)
        for query in streams.queries:
            query.awaitTermination()
        streams.check()

    def check(self) -> None:
        """Raises QueryFailed."""
        self._streams.check()

    def batches(self) -> tuple[int, float]:
        """How many the fusion has done, and how long the last one took, in seconds."""
        last = self._streams.queries[0].lastProgress if self._streams.queries else None
        return (0, 0.0) if last is None else (last.batchId + 1, last.batchDuration / 1e3)

    @property
    def written(self) -> int:
        """How many detections the fusion has written."""
        return self._run.outputs.get(DETECTIONS.name, 0)

    def stop(self) -> None:
        self._streams.stop()
        self._run.__exit__(None, None, None)

    def conclude(
        self, recording: Path, begin_ns: int, seconds: float, page: Path,
        more: Callable[[list[dict[str, Any]]], list[Section]], say: Callable[[str], None],
    ) -> Concluded:  # fmt: skip
        """Analyse what was recorded, hold what was found against the truth of all `seconds` that were played, whether
        or not anything was found in the last of them, and write the page. `more` makes sections of it from the
        channels."""
        say("recording into the lake")
        jobs.run("ingest", self._lake, source=recorded(self._spark, recording))
        say("quality of service")
        jobs.run("qos", self._lake)
        say("against the truth")
        ticks = round(seconds * 1e9) // _TICK_NS
        played = F.col("event_ns").between(begin_ns, begin_ns + ticks * _TICK_NS - 1)
        found = self._lake.read(DETECTIONS).where(played).cache()
        truth = truth_rows(Mission(replace(self._mission.settings, seconds=ticks / 10, begin_ns=begin_ns)))
        self._lake.replace(TRUTH, declared(self._spark, truth, TRUTH), self._run.id)
        matches = matched(found, self._lake.read(TRUTH)).cache()
        one = score(matches)
        seen = matches.where("error_m is not null").agg(F.countDistinct("survivor")).first()
        channels = self.channels(recording)
        say("drawing")
        write_report(self._lake, page, more=more(channels), found=one)
        return Concluded(
            detections=found.count(), written=self._lake.read(DETECTIONS).count(), ticks=ticks,
            survivors=self._mission.settings.survivors,
            survivors_found=0 if seen is None else seen[0], recall=one.recall, precision=one.precision,
            error_m=one.error_m, counts=self._run.counts, channels=channels, page=str(page),
        )  # fmt: skip

    def channels(self, recording: Path) -> list[dict[str, Any]]:
        """The counters of every channel into a node, as its daemon told them last, from the recorded telemetry."""
        source = self._spark.read.format("ringcast").option("path", str(recording)).option("live", "false")
        told = source.option("tag", _TELEMETRY).load()
        told = told.select("event_ns", F.col("value.node").alias("at"), F.explode("value.channels").alias("channel"))
        told = told.where("channel.direction = 'in'")
        names = ("node", "tag", "transport", "every", "width", "height")
        each = told.select("event_ns", "at", "channel.*").groupBy("at", *names)
        rows: list[Row] = (
            each.agg(F.max_by(F.struct("messages", "bytes", "lost"), "event_ns").alias("last"))
            .select("at", *names, "last.*")
            .orderBy("at", "tag", "width")
            .collect()
        )
        return [row.asDict() for row in rows]

    def _tags(self) -> DataFrame:
        # One source and not one per family: each takes seconds to begin.
        reader = self._spark.readStream.format("ringcast").option("tag", "**").option("socket", self._socket)
        # What a busy machine overwrote before it was read is counted, and is no reason to end a demonstration.
        reader = (
            reader.option("decode", "false").option("startingOffsets", "earliest").option("failOnDataLoss", "false")
        )
        # In as many pieces as there are rings: put together into one, a batch took half as long again.
        return reader.load()


def _settings(scratch: Path) -> dict[str, str]:
    """Little data and much to start: few partitions, and what need not be compiled is not."""
    return {
        "spark.local.dir": str(scratch),
        # Spark makes sockets below it, and the name of one has at most 107 bytes.
        "spark.python.unix.domain.socket.enabled": str(len(os.fsencode(scratch)) <= _SOCKET_ROOM).lower(),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Spark plans every batch anew, which takes longer than so little data: no optimisation that pays on more only.
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.sql.lightweightPlanChangeValidation": "false",
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
        "spark.sql.optimizer.propagateDistinctKeys.enabled": "false",
        "spark.sql.subexpressionElimination.enabled": "false",
        "spark.sql.streaming.pollingDelay": "50ms",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={scratch}",
    }
