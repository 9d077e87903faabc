"""Who made what from what: one row in `runs` for every run of a pipeline, finished or failed.

Gold rows carry the run's id, `runs` has the code's version, the input ranges, the outputs and the counts; so every
number can be followed to the code and the messages behind it.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from functools import cache
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.record.machine import digest
from ringcast.spark.lake import Lake
from ringcast.spark.tables.upkeep import RUNS


@cache
def code_version() -> str:
    """The package's version, and a digest of the pipeline's own sources: what ran, whether or not it was released."""
    return f"{metadata.version('ringcast')}+{digest(Path(__file__).parent)}"


class Run:
    """One run. Use it with `with`; the row is written at the end, with the error when there was one."""

    def __init__(self, lake: Lake, pipeline: str) -> None:
        self.lake = lake
        self.pipeline = pipeline
        self.id = f"{pipeline}-{uuid.uuid4().hex[:12]}"
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def read(self, table: str, partitions: list[str] | None, rows: int | None = None) -> None:
        """Note an input: the table and which of its partitions."""
        known: dict[str, Any] = {"partitions": "all" if partitions is None else partitions}
        if rows is not None:
            known["rows"] = rows
        self.inputs[table] = known

    def wrote(self, table: str, rows: int) -> None:
        self.outputs[table] = self.outputs.get(table, 0) + rows

    def count(self, counts: dict[str, int], prefix: str = "") -> None:
        for name, number in counts.items():
            key = f"{prefix}{name}"
            self.counts[key] = self.counts.get(key, 0) + number

    def __enter__(self) -> Run:
        self._begin = dt.datetime.now(dt.UTC)
        self._clock = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Even a failed run leaves its row: the counts may say why.
        said = None if error is None else f"{type(error).__name__}: {error}"[:2000]
        row = (
            self.id, self.pipeline, code_version(), self._begin, time.monotonic() - self._clock,
            "done" if error is None else "failed", _json(self.inputs), _json(self.outputs), _json(self.counts), said,
        )  # fmt: skip
        self.lake.add(RUNS, [row], self.id)


def lineage(lake: Lake, table: str) -> DataFrame:
    """Runs that wrote to a table, the latest first."""
    writes = F.from_json("outputs", "map<string, bigint>")
    return (
        lake.read(RUNS)
        .withColumn("rows", F.element_at(writes, table))
        .where("rows is not null")
        .orderBy(F.desc("event_time"))
    )


def ancestry(lake: Lake, table: str) -> list[str]:
    """The table, and those it was made from, as far back as `runs` knows; nearest first."""
    made_from: dict[str, set[str]] = {}
    for row in lake.read(RUNS).where("state = 'done'").select("inputs", "outputs").collect():
        for output in msgspec.json.decode(row.outputs):
            made_from.setdefault(output, set()).update(msgspec.json.decode(row.inputs))
    order, due = [], [table]
    while due:
        at = due.pop(0)
        if at not in order:
            order.append(at)
            due += sorted(made_from.get(at, ()))
    return order


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
