"""Tables on disk, read and written through Spark.

Writers put Parquet files where no reader looks, then commit them with one manifest; readers open what the manifests
name. So a job that dies in between leaves nothing but bytes that `compact` removes, and a reader never sees half a
commit. A commit that names (query, batch) is made once, however often a stream replays it.

The session must be in UTC: partitions are named by the hour.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from ringcast.spark.lake.log import LakeError, Log, versions
from ringcast.spark.lake.manifest import DataFile, Manifest, State, next_manifest
from ringcast.spark.tables.table import WHOLE, Fit, Table, fit

_PARTITION = "_partition"


@dataclass(frozen=True)
class Written:
    """What a commit did. `new` is False when it had been made before."""

    table: str
    rows: int
    files: int
    removed: int
    new: bool = True


class Lake:
    """The tables below one directory."""

    def __init__(self, spark: SparkSession, path: str | os.PathLike[str]) -> None:
        if (zone := spark.conf.get("spark.sql.session.timeZone")) != "UTC":
            raise LakeError("all", f"the session is in {zone}; open it with spark.sql.session.timeZone=UTC")
        self.spark = spark
        self.path = Path(path).absolute()

    def versions(self, table: Table) -> list[int]:
        return versions(self.path / table.name)

    def state(self, table: Table, version: int | None = None) -> State:
        """What a version of a table holds, by default the latest one."""
        return self._log(table, version or self._latest(table)).state()

    def read(
        self,
        table: Table,
        partitions: Iterable[str] | None = None,
        version: int | None = None,
        columns: StructType | None = None,
    ) -> DataFrame:
        """The committed rows, of some partitions or of all. An older version is read with the schema it has."""
        chosen = version or self._latest(table)
        log = self._log(table, chosen)
        state = log.state()
        schema = table.schema
        if version is not None and version != self._latest(table) and state.schema is not None:
            schema = StructType.fromJson(state.schema)
        wanted = None if partitions is None else set(partitions)
        files = [f for f in state.files.values() if wanted is None or f.partition in wanted]
        if not files:
            return self.spark.createDataFrame([], schema)
        return self._rows(log, files, columns or schema)

    def append(self, table: Table, rows: DataFrame, run: str = "", batch: tuple[str, int] | None = None) -> Written:
        """Add rows. With `batch` (query, number) a second call does nothing. Raises LakeError."""
        return self._write(table, rows, "append", run, batch, lambda file: False)

    def add(
        self, table: Table, rows: list[tuple[Any, ...]], run: str = "", batch: tuple[str, int] | None = None
    ) -> Written:
        """A few rows that this program made itself, without a Spark job. For tables of one partition. Raises
        LakeError."""
        if table.partition != WHOLE:
            raise LakeError(table.name, "has several partitions, and only Spark can say which; use append")
        log, state = self._open(table)
        if batch is not None and state.has(*batch):
            return Written(table.name, 0, 0, 0, new=False)
        path = log.path / "data" / "all" / f"{uuid.uuid4().hex}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = to_arrow_schema(table.schema, timezone="UTC")
        pq.write_table(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema), path)
        staged = [DataFile(str(path.relative_to(log.path)), "all", len(rows), path.stat().st_size)]
        return self._commit(table, log, state, "append", run, batch, staged, lambda file: False)

    def replace(self, table: Table, rows: DataFrame, run: str = "", partitions: Iterable[str] | None = None) -> Written:
        """Put rows in the place of what these partitions hold (default: all). Doing it twice is doing it once.

        Rows of other partitions are refused (LakeError): they would be there twice after the second time.
        """
        wanted = None if partitions is None else set(partitions)
        return self._write(
            table, rows, "replace", run, None, lambda file: wanted is None or file.partition in wanted, wanted
        )

    def compact(self, table: Table, run: str = "", grace_s: float = 3600.0, now_s: float = 0.0) -> Written:
        """One file per partition, and away with files that no manifest names and that are older than `grace_s`.

        The grace is for readers that opened the table before. `now_s` is the present as os.stat tells it.
        """
        log = self._log(table, self._latest(table))
        state = log.state()
        count: dict[str, int] = {}
        for file in state.files.values():
            count[file.partition] = count.get(file.partition, 0) + 1
        crowded = {partition for partition, files in count.items() if files > 1}
        result = Written(table.name, 0, 0, 0)
        if crowded:
            before = {path for path, file in state.files.items() if file.partition in crowded}
            # Of these files and no others: what is added meanwhile stays as it is.
            rows = self._rows(log, [state.files[path] for path in sorted(before)], table.schema).coalesce(1)
            staged = self._stage(table, log, rows)
            while True:
                if not before <= state.files.keys():
                    self._discard(log, staged)
                    raise LakeError(table.name, "somebody replaced rows during the compaction; compact again")
                if self._publish(log, state, "compact", run, None, staged, sorted(before), table):
                    break
                state = log.state()
            result = Written(table.name, sum(f.rows for f in staged), len(staged), len(before))
        self._sweep(log, now_s - grace_s)
        return result

    def _write(
        self,
        table: Table,
        rows: DataFrame,
        what: str,
        run: str,
        batch: tuple[str, int] | None,
        replaces: Callable[[DataFile], bool],
        only: set[str] | None = None,
    ) -> Written:
        if not (found := self.fitting(table, rows)).fits:
            raise LakeError(
                table.name,
                f"these rows do not fit: {'; '.join(found.breaks)}. Declare the change in ringcast.spark.tables, "
                "which opens a new version, or send the rows to quarantine",
            )
        log, state = self._open(table)
        if batch is not None and state.has(*batch):
            return Written(table.name, 0, 0, 0, new=False)
        staged = self._stage(table, log, rows)
        if only is not None and (strays := {file.partition for file in staged} - only):
            self._discard(log, staged)
            raise LakeError(table.name, f"rows of {', '.join(sorted(strays))} are not of the partitions to replace")
        return self._commit(table, log, state, what, run, batch, staged, replaces)

    def _rows(self, log: Log, files: Iterable[DataFile], schema: StructType) -> DataFrame:
        return self.spark.read.schema(schema).parquet(*(str(log.path / file.path) for file in files))

    def _open(self, table: Table) -> tuple[Log, State]:
        """The version to write to: the latest, or a new one when the declared schema is not what that can become."""
        version = self._latest(table)
        log = self._log(table, version)
        state = log.state()
        if state.schema is not None and not fit(StructType.fromJson(state.schema), table.schema).fits:
            log = self._log(table, version + 1)
            state = log.state()
        return log, state

    def _commit(
        self,
        table: Table,
        log: Log,
        state: State,
        what: str,
        run: str,
        batch: tuple[str, int] | None,
        staged: list[DataFile],
        replaces: Callable[[DataFile], bool],
    ) -> Written:
        """Commit staged files after whatever others commit meanwhile, unless one of those is this very batch."""
        while True:
            removed = sorted(path for path, file in state.files.items() if replaces(file))
            if self._publish(log, state, what, run, batch, staged, removed, table):
                return Written(table.name, sum(file.rows for file in staged), len(staged), len(removed))
            state = log.state()
            if batch is not None and state.has(*batch):
                self._discard(log, staged)
                return Written(table.name, 0, 0, 0, new=False)

    def fitting(self, table: Table, rows: DataFrame) -> Fit:
        """How these rows go into the table as it is declared. Columns that it does not declare are not written."""
        # Spark forgets "not null" on the way through most functions, so values are checked when they are written.
        required = {field.name for field in table.schema if not field.nullable}
        offered = [StructField(f.name, f.dataType, f.nullable and f.name not in required) for f in rows.schema]
        return fit(table.schema, StructType(offered))

    def _stage(self, table: Table, log: Log, rows: DataFrame) -> list[DataFile]:
        """Write Parquet files below the version's data, unseen until a manifest names them."""
        name = uuid.uuid4().hex
        stage = log.path / "staging" / name
        required = [field.name for field in table.schema if not field.nullable]
        complete = rows.select(*table.columns, F.expr(table.partition).alias(_PARTITION))
        if required:
            whole = F.lit(True)
            for column in required:
                whole &= F.col(column).isNotNull()
            complete = complete.where(F.when(whole, True).otherwise(F.raise_error(F.lit(
                f"table {table.name}: a row has null in one of {', '.join(required)}"
            )).cast("boolean")))  # fmt: skip
        complete.write.partitionBy(_PARTITION).parquet(str(stage))
        files = []
        for at, found in enumerate(sorted(stage.glob(f"{_PARTITION}=*/*.parquet"))):
            partition = unquote(found.parent.name.partition("=")[2])
            target = log.path / "data" / partition.replace("/", "_") / f"{name}-{at}.parquet"
            count = pq.read_metadata(found).num_rows
            if count == 0:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(found, target)
            files.append(DataFile(str(target.relative_to(log.path)), partition, count, target.stat().st_size))
        shutil.rmtree(stage)
        return files

    def _publish(
        self, log: Log, state: State, what: str, run: str, batch: tuple[str, int] | None, staged: list[DataFile],
        removed: list[str], table: Table,
    ) -> bool:  # fmt: skip
        query, number = batch or (None, None)
        draft = Manifest(
            number=0, what=what, run=run, schema=table.schema.jsonValue(), added=staged, removed=removed, query=query,
            batch=number,
        )  # fmt: skip
        return log.publish(next_manifest(state, draft))

    def _discard(self, log: Log, staged: list[DataFile]) -> None:
        for file in staged:
            (log.path / file.path).unlink(missing_ok=True)

    def _sweep(self, log: Log, before_s: float) -> None:
        named = log.state().files
        for path in log.path.glob("data/*/*.parquet"):
            if str(path.relative_to(log.path)) not in named and path.stat().st_mtime < before_s:
                path.unlink()
        for stage in log.path.glob("staging/*"):
            if stage.stat().st_mtime < before_s:
                shutil.rmtree(stage, ignore_errors=True)

    def _latest(self, table: Table) -> int:
        return max(self.versions(table), default=1)

    def _log(self, table: Table, version: int) -> Log:
        return Log(self.path / table.name / f"v{version}")
