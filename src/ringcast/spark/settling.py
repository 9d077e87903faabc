"""Rows to their table, to quarantine and to the counts: the one way in which pipelines write.

In a stream every table knows the query and batch it has, so that a batch that is replayed after a crash finds what was
committed and adds only what was not. Rows whose schema is not what the table declares, or can grow into, are put
aside whole.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast.record.delta import State
from ringcast.spark import quality
from ringcast.spark.declaration import Pipeline
from ringcast.spark.lake import Lake, Written
from ringcast.spark.lineage import Run
from ringcast.spark.quality import Expectation
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import QUALITY, QUARANTINE

FITS = Expectation("fits the declared schema", "false", "quarantine")


@dataclass(frozen=True)
class Place:
    """Where rows go: `partitions` are replaced (None: all of them), or with `batch` they are added once; by their `key`
    those are left out then that a backfill brought before. `bases` is what the tables held before the rows were
    computed, by their names."""

    partitions: list[str] | None = None
    batch: tuple[str, int] | None = None
    bases: Mapping[str, State] = field(default_factory=dict)
    key: tuple[str, ...] = ()

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
        aside = dropped = written = 0
        if any(counts[e.name] for e in expectations if e.action == "quarantine") or _has_aside(lake, table, place):
            aside = _put(lake, QUARANTINE, bad, run, replace(place, key=()), table.name).rows
        # Rows of another schema leave the table as it is: there is nothing to put in the place of what it holds.
        if misfit.fits:
            made = _put(lake, table, good, run, place, table.name)
            written, dropped = made.rows, made.dropped
    finally:
        judged.unpersist()
    counts["quarantined"] = aside
    if dropped:
        counts["duplicated"] = dropped
    note(lake, table.name, counts, run, place, {e.name: e.action for e in expectations})
    run.wrote(table.name, written)
    if aside:
        run.wrote(QUARANTINE.name, aside)
    run.count({k: v for k, v in counts.items() if v}, f"{table.name}: ")
    return counts


def fetchable(found: DataFrame, one: Pipeline, run: Run) -> DataFrame:
    """All of a function's result that `settle_small` asks for, so that one fetch brings it.

    `_at` is a row's place in the array that `each` names. A result whose array is empty is a row without place, which
    is there for its tallies.
    """
    assert one.writes is not None
    rest = [name for name in found.columns if name != one.each]
    if one.each is None:
        flat = found.withColumn("_at", F.lit(0))
    else:
        flat = found.select(*rest, F.posexplode_outer(one.each).alias("_at", "_one")).select(*rest, "_at", "_one.*")
    if "run_id" in one.writes.columns:
        flat = flat.withColumn("run_id", F.lit(run.id))
    return quality.judge(flat, one.expectations).withColumn("_partition", F.expr(one.writes.partition))


def settle_small(
    lake: Lake, one: Pipeline, fetched: pa.Table, run: Run, place: Place, send: Callable[[pa.Table], None] | None = None
) -> None:  # fmt: skip
    """The same for the few rows of a batch that were fetched (`fetchable`), written without a Spark job. `send` is
    given what was written. Raises ExpectationFailed, LakeError."""
    table = one.writes
    assert table is not None
    told = fetched.filter(pc.less_equal(pc.fill_null(fetched["_at"], 0), 0))
    numbers = {name: int(pc.sum(told[name]).as_py() or 0) for name in one.tally}
    came = fetched.filter(pc.is_valid(fetched["_at"]))
    rows = _once(came, one.key)
    if one.key:
        numbers["duplicated"] = numbers.get("duplicated", 0) + came.num_rows - rows.num_rows
    failed = rows["_failed"].to_pylist()
    counts = {"rows": rows.num_rows, **{e.name: sum(e.name in names for names in failed) for e in one.expectations}}
    quality.enforce(counts, one.expectations, table)
    refused = {e.name for e in one.expectations if e.action == "quarantine"}
    good = rows.filter(pa.array([refused.isdisjoint(names) for names in failed], pa.bool_()))
    if good.num_rows < rows.num_rows:
        plain = rows.drop_columns(["_at", "_failed", "_partition", *one.tally])
        settle(lake, table, lake.spark.createDataFrame(plain), one.expectations, run, replace(place, key=one.key))
    else:
        if good.num_rows:
            partitions = good["_partition"].to_pylist() if table.partition_column else [None] * good.num_rows
            made = lake.add_arrow(table, good, partitions, run.id, _batch(place, table.name), one.key)
            run.wrote(table.name, made.rows)
            if made.dropped:
                numbers["duplicated"] = numbers.get("duplicated", 0) + made.dropped
        run.count({k: v for k, v in counts.items() if v}, f"{table.name}: ")
        counts["quarantined"] = 0
    if send is not None and good.num_rows:  # what comes on the tag is in the table
        send(good.select(table.columns))
    whole = {**(counts if good.num_rows == rows.num_rows else {}), **numbers}
    note(lake, table.name, whole, run, place, {e.name: e.action for e in one.expectations})
    run.count(numbers, f"{one.name}: ")


def _once(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The first row of each key."""
    if not key:
        return rows
    known: set[tuple[object, ...]] = set()
    first = []
    for values in zip(*(rows[name].to_pylist() for name in key), strict=True):
        first.append(values not in known)
        known.add(values)
    return rows.filter(pa.array(first, pa.bool_()))


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


def _put(lake: Lake, table: Table, rows: DataFrame, run: Run, place: Place, owner: str) -> Written:
    if place.batch is not None:
        return lake.append(table, rows, run.id, _batch(place, owner), place.key)
    partitions = place.partitions
    if table is QUARANTINE:
        if partitions is None:
            held = {str(file.partition) for file in lake.state(table).files.values()}
            partitions = [partition for partition in held if partition.startswith(f"{owner}@")]
            partitions += [row[0] for row in rows.selectExpr(table.partition).distinct().collect()]
        else:
            partitions = [f"{owner}@{partition}" for partition in partitions]
    return lake.replace(table, rows, run.id, partitions, place.bases.get(table.name))


def _batch(place: Place, owner: str) -> tuple[str, int] | None:
    return None if place.batch is None else (f"{place.batch[0]} {owner}", place.batch[1])
