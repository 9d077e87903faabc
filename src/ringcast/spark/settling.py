"""Rows to their table, to quarantine and to the counts: the one way in which pipelines write.

In a stream every table knows the query and batch it has, so that a batch that is replayed after a crash finds what was
committed and adds only what was not. Rows whose schema is not what the table declares, or can grow into, are put
aside whole.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.record.delta import State
from ringcast.spark import quality
from ringcast.spark.lake import Lake
from ringcast.spark.lineage import Run
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import QUALITY, QUARANTINE

FITS = Expectation("fits the declared schema", "false", "quarantine")


@dataclass(frozen=True)
class Place:
    """Where rows go: `partitions` are replaced (None: all of them), or with `batch` they are added once. `bases` is
    what the tables held before the rows were computed, by their names."""

    partitions: list[str] | None = None
    batch: tuple[str, int] | None = None
    bases: Mapping[str, State] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return -1 if self.batch is None else self.batch[1]


def settle(
    lake: Lake, table: Table, rows: DataFrame, expectations: Sequence[Expectation], run: Run, place: Place
) -> dict[str, int]:
    """Write what is good, put aside what is not, and count. Returns the counts. Raises ExpectationFailed, LakeError."""
    misfit = lake.fitting(table, rows)
    if not misfit.fits:
        expectations = [FITS]
        rows = rows.withColumn("rejected", F.lit("; ".join(misfit.breaks)))
    judged = quality.judge(rows, expectations).persist()
    try:
        counts = quality.count(judged, expectations)
        quality.enforce(counts, expectations, table)
        bad = quality.rejected(judged, expectations, table, run.id)
        good = quality.kept(judged, expectations, table)
        aside = 0
        if any(counts[e.name] for e in expectations if e.action == "quarantine") or _has_aside(lake, table, place):
            aside = _put(lake, QUARANTINE, bad, run, place, table.name)
        # Rows of another schema leave the table as it is: there is nothing to put in the place of what it holds.
        written = _put(lake, table, good, run, place, table.name) if misfit.fits else 0
    finally:
        judged.unpersist()
    counts["quarantined"] = aside
    note(lake, table.name, counts, run, place, {e.name: e.action for e in expectations})
    run.wrote(table.name, written)
    if aside:
        run.wrote(QUARANTINE.name, aside)
    run.count({k: v for k, v in counts.items() if v}, f"{table.name}: ")
    return counts


def settle_small(
    lake: Lake, table: Table, rows: DataFrame, expectations: Sequence[Expectation], run: Run, place: Place,
    more: Mapping[str, int],
) -> pa.Table:  # fmt: skip
    """The same for a few rows of a stream, fetched once and written without a Spark job. Returns what was written.

    `more` are counts of the same batch, noted with the others.
    """
    if not lake.fitting(table, rows).fits:
        settle(lake, table, rows, expectations, run, place)
        note(lake, table.name, dict(more), run, place)
        return pa.table({})
    judged = quality.judge(rows, expectations).withColumn("_partition", F.expr(table.partition)).toArrow()
    failed = judged["_failed"].to_pylist()
    counts = {"rows": judged.num_rows, **{e.name: sum(e.name in names for names in failed) for e in expectations}}
    quality.enforce(counts, expectations, table)
    refused = {e.name for e in expectations if e.action == "quarantine"}
    good = [not refused & set(names) for names in failed]
    kept = judged.filter(pa.array(good, pa.bool_()))
    if not all(good):
        settle(lake, table, rows, expectations, run, place)
        note(lake, table.name, dict(more), run, place)
        return kept.select(table.columns)
    partitions = kept["_partition"].to_pylist() if table.partition_column else [None] * kept.num_rows
    written = lake.add_arrow(table, kept, partitions, run.id, _batch(place, table.name)).rows
    told = {**counts, "quarantined": 0, **more}
    note(lake, table.name, told, run, place, {e.name: e.action for e in expectations})
    run.wrote(table.name, written)
    run.count({k: v for k, v in counts.items() if v}, f"{table.name}: ")
    return kept.select(table.columns)


def note(
    lake: Lake, table: str, counts: dict[str, int], run: Run, place: Place, actions: dict[str, str] | None = None
) -> None:
    """Counts into `quality`, one row each."""
    if not counts:
        return
    now = dt.datetime.now(dt.UTC)
    rows = [
        (now, table, run.id, place.number, name, (actions or {}).get(name, "count"), number)
        for name, number in counts.items()
    ]
    lake.add(QUALITY, rows, run.id, _batch(place, f"{table} counts {','.join(sorted(counts))}"))


def as_declared(rows: DataFrame, table: Table) -> DataFrame:
    """The table's columns, in its types."""
    return rows.select(*(F.col(f.name).cast(f.dataType).alias(f.name) for f in table.schema))


def _has_aside(lake: Lake, table: Table, place: Place) -> bool:
    """Whether an earlier run put rows aside that this one replaces."""
    if place.batch is not None:
        return False
    return any(str(file.partition).startswith(f"{table.name}@") for file in lake.state(QUARANTINE).files.values())


def _put(lake: Lake, table: Table, rows: DataFrame, run: Run, place: Place, owner: str) -> int:
    if place.batch is not None:
        return lake.append(table, rows, run.id, _batch(place, owner)).rows
    partitions = place.partitions
    if table is QUARANTINE:
        if partitions is None:
            held = {str(file.partition) for file in lake.state(table).files.values()}
            partitions = [partition for partition in held if partition.startswith(f"{owner}@")]
            partitions += [row[0] for row in rows.selectExpr(table.partition).distinct().collect()]
        else:
            partitions = [f"{owner}@{partition}" for partition in partitions]
    return lake.replace(table, rows, run.id, partitions, place.bases.get(table.name)).rows


def _batch(place: Place, owner: str) -> tuple[str, int] | None:
    return None if place.batch is None else (f"{place.batch[0]} {owner}", place.batch[1])
