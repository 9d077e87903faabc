"""The tables below one directory, read and written through Spark. A thin facade: `record.delta` commits and tells.

Spark writes Parquet files where no reader looks, and one commit makes them count. Each table is a Delta table of its
own, `<lake>/<table>`, so that whatever reads Delta reads it. Partitions are named by the hour, so the session must be
in UTC.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ringcast.record.delta import DataFile, Decide, Delta, State, TableChanged, TableError, described, nothing
from ringcast.spark.session import has_delta
from ringcast.spark.tables.table import Fit, Table, fit, same_type

LakeError = TableError
_PARTITION = "_partition"
_STAGING = "_staging"
_BATCH, _WHOLE = "batch", "whole"
"""How names of files begin, by who wrote them: a stream, or somebody who had all the rows."""
_CLUSTERED = ("tag", "event_ns")
"""Rows that have these lie in a file in this order: readers that ask for a tag, or a time, leave most of it out."""
_PATTERN = re.compile(r"[][*?{}\\]")


@dataclass(frozen=True)
class Written:
    """What a commit did. `new` is False when it had been made before; `dropped` rows were there already."""

    table: str
    rows: int
    files: int
    removed: int
    new: bool = True
    dropped: int = 0


class Lake:
    """The tables below one directory."""

    def __init__(self, spark: SparkSession, path: str | os.PathLike[str]) -> None:
        if (zone := spark.conf.get("spark.sql.session.timeZone")) != "UTC":
            raise LakeError("all", f"the session is in {zone}; open it with spark.sql.session.timeZone=UTC")
        self.spark = spark
        self.path = Path(path).absolute()
        self._open = threading.local()  # each query writes on a thread of its own

    def location(self, table: Table) -> Path:
        return self.path / table.folder

    def exists(self, table: Table) -> bool:
        return self._delta(table).exists()

    def state(self, table: Table, at: int | None = None) -> State:
        """The files and rows that a table holds, or held in an older version. Raises LakeError."""
        return self._delta(table).state(at)

    def read(self, table: Table, partitions: Iterable[str] | None = None, at: int | None = None) -> DataFrame:
        """The committed rows in the declared columns, of some partitions or of all, now or as of a version `at`.

        Rows that were written before a column was declared have null there. Raises LakeError.
        """
        wanted = None if partitions is None else set(partitions)
        if has_delta(self.spark) and (self.location(table) / "_delta_log").is_dir():
            return self._by_delta(table, wanted, at)
        state = self.state(table, at)
        self._check(table, state.schema)
        return self._rows(table, [f for f in state.files.values() if wanted is None or f.partition in wanted])

    def append(
        self, table: Table, rows: DataFrame, run: str = "", batch: tuple[str, int] | None = None,
        key: Sequence[str] = (),
    ) -> Written:  # fmt: skip
        """Add rows. With `batch` (query, number) a second call does nothing; with `key` also, rows that a backfill
        brought before are left out. Raises LakeError."""
        delta = self._fitted(table, rows)
        if batch is not None and delta.batch(batch[0]) >= batch[1]:
            return Written(table.name, 0, 0, 0, new=False)
        staged, dropped = self._stage(table, rows, _BATCH if batch else _WHOLE), 0
        while True:
            backfilled = delta.backfilled if batch is not None and key else None
            if backfilled is not None and (theirs := self._backfilled(table, staged, backfilled)):
                ours = self._rows(table, staged)
                fewer = self._stage(table, ours.join(theirs.select(*key), list(key), "left_anti"), _BATCH)
                dropped += sum(file.rows for file in staged) - sum(file.rows for file in fewer)
                self._discard(table, staged)
                staged = fewer
            try:
                made = self._commit(
                    table, delta, staged, nothing, "append", run, batch, keep=True, backfilled=backfilled
                )
                return replace(made, dropped=dropped)
            except TableChanged:
                continue
            except LakeError:
                self._discard(table, staged)
                raise

    def append_new(self, table: Table, rows: DataFrame, key: Sequence[str], run: str = "") -> Written:
        """Add those rows whose key the table does not have, whoever else adds rows meanwhile. Raises LakeError."""
        delta = self._fitted(table, rows)
        known = dict(self.state(table).files)
        held = self._rows(table, list(known.values()))
        staged = self._stage(table, rows.join(held.select(*key), list(key), "left_anti"), _WHOLE)

        def decide(state: State) -> Iterable[DataFile]:
            if state.files.keys() - known.keys():
                raise TableChanged(table.name, "rows were added meanwhile")
            return ()

        while True:
            try:
                return self._commit(table, delta, staged, decide, "append", run, None, keep=True, backfill=True)
            except TableChanged:
                later = {path: file for path, file in self.state(table).files.items() if path not in known}
                known |= later
                ours, theirs = self._rows(table, staged), self._rows(table, list(later.values()))
                fewer = self._stage(table, ours.join(theirs.select(*key), list(key), "left_anti"), _WHOLE)
                self._discard(table, staged)
                staged = fewer

    def add(
        self, table: Table, rows: list[tuple[Any, ...]], run: str = "", batch: tuple[str, int] | None = None
    ) -> Written:
        """A few rows that this program made itself, without a Spark job. For tables of one partition. Raises
        LakeError."""
        if table.partition_column is not None:
            raise LakeError(table.name, "has several partitions, and only Spark can say which; use append")
        schema = to_arrow_schema(table.schema, timezone="UTC")
        made = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        return self.add_arrow(table, made, [None] * len(rows), run, batch)

    def add_arrow(
        self, table: Table, rows: pa.Table, partitions: list[str | None], run: str = "",
        batch: tuple[str, int] | None = None, key: Sequence[str] = (),
    ) -> Written:  # fmt: skip
        """Rows that are here already, each with the name of its partition, without a Spark job. As `append`, but for a
        backfill that is made in this very moment. Raises LakeError."""
        delta = self._prepared(table)
        if batch is not None and delta.batch(batch[0]) >= batch[1]:
            return Written(table.name, 0, 0, 0, new=False)
        rows = rows.select(table.columns).cast(to_arrow_schema(table.schema, timezone="UTC"))
        empty = [f.name for f in table.schema if not f.nullable and rows[f.name].null_count]
        if empty:
            raise LakeError(table.name, f"a row has null in one of {', '.join(empty)}")
        came = rows.num_rows
        if batch is not None and key and delta.backfilled >= 0:
            rows, partitions = self._not_backfilled(table, rows, partitions, key)
        files = []
        for partition in sorted(set(partitions), key=str):
            chosen = rows.filter(pa.array([one == partition for one in partitions], pa.bool_()))
            path = self._new_file(_BATCH if batch else _WHOLE)
            (self.location(table) / path).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(chosen, self.location(table) / path, compression="zstd", store_schema=False)
            files.append(described(self.location(table), path, partition))
        made = self._commit(table, delta, files, nothing, "append", run, batch)
        return replace(made, dropped=came - rows.num_rows)

    def replace(
        self, table: Table, rows: DataFrame, run: str = "", partitions: Iterable[str] | None = None,
        base: State | None = None,
    ) -> Written:  # fmt: skip
        """Put rows in the place of what these partitions hold (default: all). Doing it twice is doing it once.

        What is replaced is what they held in `base`, by default when this is called. Raises TableChanged when somebody
        else wrote to them since, for those rows would be lost; LakeError for rows of other partitions, which would be
        there twice after the second time.
        """
        wanted = None if partitions is None else set(partitions)

        def chosen(state: State) -> dict[str, DataFile]:
            return {path: f for path, f in state.files.items() if wanted is None or f.partition in wanted}

        delta = self._fitted(table, rows)
        before = chosen(base or self.state(table))

        def decide(state: State) -> Iterable[DataFile]:
            now = chosen(state)
            if now.keys() != before.keys():
                raise TableChanged(table.name, "somebody else wrote to what this replaces; compute it again")
            return now.values()

        staged = self._stage(table, rows, _WHOLE)
        if wanted is not None and (strays := {str(file.partition) for file in staged} - wanted):
            self._discard(table, staged)
            raise LakeError(table.name, f"rows of {', '.join(sorted(strays))} are not of the partitions to replace")
        return self._commit(table, delta, staged, decide, "replace", run, None, backfill=True)

    def compact(self, table: Table, grace_s: float = 3600.0) -> Written:
        """One file per partition, by tag and time where rows have these, and away with files that nobody could read
        for `grace_s` (whole hours), which is for readers that opened the table before. Raises TableChanged."""
        delta = self._delta(table)
        ordered = table.partition_column is not None and set(_CLUSTERED) <= set(table.columns)
        removed, written = delta.compact(list(_CLUSTERED) if ordered else None)
        delta.vacuum(grace_s)
        for stage in (self.location(table) / _STAGING).glob("*"):
            if stage.stat().st_mtime < time.time() - max(grace_s, 3600.0):
                shutil.rmtree(stage, ignore_errors=True)
        return Written(table.name, self.state(table).rows, written, removed)

    def fitting(self, table: Table, rows: DataFrame) -> Fit:
        """How these rows go into the table as it is declared. Columns that it does not declare are not written."""
        # Spark forgets "not null" on the way through most functions, so values are checked when they are written.
        required = {field.name for field in table.schema if not field.nullable}
        offered = [StructField(f.name, f.dataType, f.nullable and f.name not in required) for f in rows.schema]
        return fit(table.schema, StructType(offered))

    # ---------------------------------------------------------------- parts

    def _delta(self, table: Table) -> Delta:
        location = self.location(table)
        if (self.path / table.name / "v1" / "manifests").is_dir() and not (location / "_delta_log").is_dir():
            raise LakeError(table.name, "an older Ringcast wrote it; convert the lake once: ringcast pipeline upgrade")
        tables: dict[Table, Delta] = self._open.__dict__.setdefault("tables", {})
        if table not in tables:
            schema = json.dumps(table.stored_schema.jsonValue())
            tables[table] = Delta(location, schema, table.partition_column, table.about)
        return tables[table]

    def _fitted(self, table: Table, rows: DataFrame) -> Delta:
        if not (found := self.fitting(table, rows)).fits:
            raise LakeError(
                table.name,
                f"these rows do not fit: {'; '.join(found.breaks)}. Declare the table with the next `version`, or send "
                "the rows to quarantine",
            )
        return self._prepared(table)

    def _prepared(self, table: Table) -> Delta:
        """Ready to be written to as it is declared; columns that were declared since are added."""
        delta = self._delta(table)
        stored = delta.schema()
        self._check(table, stored)
        if stored is not None:
            have = {field["name"] for field in json.loads(stored)["fields"]}
            new = [field.jsonValue() for field in table.schema if field.name not in have]
            if new:
                delta.add_columns(new)
        return delta

    def _check(self, table: Table, schema: str | None) -> None:
        """Whether what is stored can be read and written as declared. Code that is older than the table may know fewer
        of its columns, and code that is newer more of them, as long as these may be null."""
        if schema is None:
            return
        stored = {field.name: field for field in StructType.fromJson(json.loads(schema))}
        declared = {field.name: field for field in table.schema}
        wrong = [
            f"column {name} is {stored[name].dataType.simpleString()}, declared is {field.dataType.simpleString()}"
            for name, field in declared.items()
            if name in stored and not same_type(stored[name].dataType, field.dataType)
        ]  # fmt: skip
        wrong += [f"column {name} is new and may not be null" for name, field in declared.items()
                  if name not in stored and not field.nullable]  # fmt: skip
        wrong += [f"column {name} may not be null and is not declared" for name, field in stored.items()
                  if name not in declared and not field.nullable]  # fmt: skip
        if wrong:
            raise LakeError(
                table.name,
                f"{'; '.join(wrong)}. Declare it with version={table.version + 1}, which is a table beside this one",
            )

    def _by_delta(self, table: Table, partitions: set[str] | None, at: int | None) -> DataFrame:
        """By Delta's own reader, which knows deletion vectors and the like."""
        reader = self.spark.read.format("delta")
        rows = (reader if at is None else reader.option("versionAsOf", at)).load(str(self.location(table)))
        self._check(table, rows.schema.json())
        if partitions is not None and table.partition_column is not None:
            rows = rows.where(F.col(table.partition_column).isin(sorted(partitions)))
        missing = {
            f.name: F.lit(None).cast(f.dataType).alias(f.name) for f in table.schema if f.name not in rows.columns
        }
        return rows.select(*(missing.get(name, F.col(name)) for name in table.columns))

    def _rows(self, table: Table, files: Sequence[DataFile]) -> DataFrame:
        if not files:
            return self.spark.createDataFrame([], table.schema)
        # Spark takes brackets and asterisks for a pattern; they are names.
        paths = (_PATTERN.sub(r"\\\g<0>", str(self.location(table) / file.path)) for file in files)
        return self.spark.read.schema(table.schema).parquet(*paths)

    def _commit(
        self, table: Table, delta: Delta, staged: list[DataFile], decide: Decide, what: str, run: str,
        batch: tuple[str, int] | None, keep: bool = False, backfill: bool = False, backfilled: int | None = None,
    ) -> Written:  # fmt: skip
        removed: list[DataFile] = []

        def decided(state: State) -> Iterable[DataFile]:
            removed[:] = decide(state)
            return removed

        try:
            chosen = nothing if decide is nothing else decided
            told = {"what": what, "run": run}
            made = delta.commit(staged, chosen, batch=batch, told=told, backfill=backfill, backfilled=backfilled)
        except LakeError:
            if not keep:
                self._discard(table, staged)
            raise
        if made is None:
            self._discard(table, staged)
            return Written(table.name, 0, 0, 0, new=False)
        return Written(table.name, sum(file.rows for file in staged), len(staged), len(removed))

    def _backfilled(self, table: Table, staged: list[DataFile], last: int) -> DataFrame | None:
        """What these partitions have of others than streams; None where that is nothing."""
        files = self._of_others(table, {file.partition for file in staged}) if last >= 0 and staged else []
        return self._rows(table, files) if files else None

    def _of_others(self, table: Table, partitions: set[str | None]) -> list[DataFile]:
        files = self.state(table).files.values()
        return [f for f in files if f.partition in partitions and not f.path.startswith(f"data/{_BATCH}")]

    def _not_backfilled(
        self, table: Table, rows: pa.Table, partitions: list[str | None], key: Sequence[str]
    ) -> tuple[pa.Table, list[str | None]]:
        known: set[tuple[Any, ...]] = set()
        for file in self._of_others(table, set(partitions)):
            held = pq.read_table(self.location(table) / file.path, columns=list(key), partitioning=None)
            known |= set(zip(*(held[name].to_pylist() for name in key), strict=True))
        new = [values not in known for values in zip(*(rows[name].to_pylist() for name in key), strict=True)]
        kept = [partition for partition, fresh in zip(partitions, new, strict=True) if fresh]
        return rows.filter(pa.array(new, pa.bool_())), kept

    def _stage(self, table: Table, rows: DataFrame, kind: str) -> list[DataFile]:
        """Write Parquet files below the table, unseen until a commit names them."""
        root = self.location(table)
        stage = root / _STAGING / uuid.uuid4().hex
        required = [field.name for field in table.schema if not field.nullable]
        complete = rows.select(*table.columns, F.expr(table.partition).alias(_PARTITION))
        if required:
            whole = F.lit(True)
            for column in required:
                whole &= F.col(column).isNotNull()
            complete = complete.where(F.when(whole, True).otherwise(F.raise_error(F.lit(
                f"table {table.name}: a row has null in one of {', '.join(required)}"
            )).cast("boolean")))  # fmt: skip
        if set(_CLUSTERED) <= set(table.columns):
            complete = complete.sortWithinPartitions(_PARTITION, *_CLUSTERED)
        complete.write.partitionBy(_PARTITION).parquet(str(stage))
        files = []
        for found in sorted(stage.glob(f"{_PARTITION}=*/*.parquet")):
            if pq.read_metadata(found).num_rows == 0:
                continue
            partition = unquote(found.parent.name.partition("=")[2])
            path = self._new_file(kind)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            os.rename(found, root / path)
            files.append(described(root, path, partition if table.partition_column else None))
        shutil.rmtree(stage)
        return files

    @staticmethod
    def _new_file(kind: str) -> str:
        return f"data/{kind}-{uuid.uuid4().hex}.parquet"

    def _discard(self, table: Table, staged: Iterable[DataFile]) -> None:
        for file in staged:
            (self.location(table) / file.path).unlink(missing_ok=True)
