"""How tables are read and committed: Delta Lake's log, through the package `deltalake`. No Spark, no Java.

Whoever has Parquet files commits them here, and whoever reads asks here which files count. A commit is seen whole or
not at all. A commit that names (query, batch) is made once, however often it is tried. Files are on disk before the
commit that names them is. Invariant: a commit is made on the state that its caller decided on; when somebody else
committed meanwhile, the caller decides again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from ringcast.errors import RingcastError
from ringcast.record.log_tail import LogTail, append, commit_file, is_plain

CHECKPOINT_EVERY = 100
"""Commits. A reader opens the last checkpoint and at most so many commits after it."""
_SUMMARISED = ("tag", "seq", "event_ns")
"""Columns whose least and greatest value a file's entry tells, so that readers can leave it out."""
_TRIES = 200
_BACKFILL = "ringcast backfill"
_UNREADABLE = {"deletionVectors", "columnMapping"}


class TableError(RingcastError):
    """A table cannot do this; `table` and `reason` say what and why."""

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        self.reason = reason
        super().__init__(f"table {table}: {reason}")


class TableChanged(TableError):
    """Somebody else changed what this commit was computed from. Nothing was committed: compute again."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file: where it lies below the table, and what it holds."""

    path: str
    rows: int
    size: int
    partition: str | None = None
    stats: str = field(default="{}", compare=False)


@dataclass(frozen=True)
class State:
    """What a table holds in one of its versions; -1 when it does not exist yet."""

    version: int = -1
    files: Mapping[str, DataFile] = field(default_factory=dict)
    schema: str | None = None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.values())


Decide = Callable[[State], Iterable[DataFile]]
"""Which of a state's files a commit removes. Raises TableChanged when it should not be made on that state."""


def nothing(state: State) -> Iterable[DataFile]:
    """Remove no file: an append, which fits any state."""
    return ()


class Delta:
    """One table. `schema` is Delta's JSON, with the column `partition` in it where there is one. For one thread: what
    was read of the log is kept, and only what came since is read."""

    def __init__(self, path: Path, schema: str, partition: str | None = None, about: str = "") -> None:
        self.path = path
        self._schema, self._partition, self._about = schema, partition, about
        self._opened: tuple[tuple[int, int], DeltaTable] | None = None
        self._seen: tuple[tuple[int, int], LogTail] | None = None

    def exists(self) -> bool:
        return (self.path / "_delta_log").is_dir() and self._load() is not None

    def state(self, version: int | None = None) -> State:
        """Now, or as it was. Raises TableError when it cannot be read, or has no such version."""
        table = self._load(version)
        return State() if table is None else self._state(table)

    def schema(self) -> str | None:
        """As it is stored; None when there is no table yet. Does not look at its files. Raises TableError."""
        tail = self._tail()
        return None if tail is None else tail.schema

    def batch(self, query: str) -> int:
        """The last batch of that query that was committed; -1 when none was."""
        tail = self._tail()
        return -1 if tail is None else self._last(tail, query)

    @property
    def backfilled(self) -> int:
        """Which version the last backfill made; -1 when there was none."""
        return self.batch(_BACKFILL)

    def commit(
        self,
        added: list[DataFile],
        decide: Decide = nothing,
        *,
        batch: tuple[str, int] | None = None,
        told: Mapping[str, str] | None = None,
        backfill: bool = False,
        backfilled: int | None = None,
    ) -> State | None:
        """Add files and remove those that `decide` names; returns the state it was made on, None when that batch had
        been committed before. A `backfill` may hold what a stream has yet to bring; with `backfilled`, which is what
        that property was, TableChanged is raised when there has been another one since.

        Raises TableError, TableChanged, OSError when the disk is full.
        """
        _sync([self.path / file.path for file in added])
        for _ in range(_TRIES):
            # An append fits any state: listing thousands of files for each would make commits ever slower.
            table = None if decide is nothing else self._load()
            tail = self._tail()
            version = -1 if tail is None else tail.version
            if tail is not None:
                if backfilled is not None and self._last(tail, _BACKFILL) != backfilled:
                    raise TableChanged(str(self.path), "a backfill was made meanwhile; look at what it brought")
                if batch is not None and self._last(tail, batch[0]) >= batch[1]:
                    return None
            named = dict([batch] if batch is not None else []) | ({_BACKFILL: version + 1} if backfill else {})
            state = State(version) if table is None else self._state(table)
            removed = list(decide(state))
            if tail is not None and not added and not removed and batch is None:
                return state
            try:
                if tail is None:
                    self._create(added, _properties(named, told))
                elif removed or not tail.plain:
                    self._replace(table, removed, added, _properties(named, told))
                else:
                    entries = [_entry(file, self._partition) for file in added]
                    append(self._log, state.version + 1, entries, named, dict(told or {}))
            except (CommitFailedError, FileExistsError):
                continue  # somebody was first: look at what they did
            except (DeltaError, OSError) as exc:
                if tail is None and self._load() is not None:
                    continue
                raise _failure(self.path, exc) from exc
            self._settle(state.version + 1)
            return state
        raise TableError(str(self.path), f"others committed {_TRIES} times before this commit could; try again")

    def add_columns(self, columns: list[dict[str, Any]]) -> None:
        """Nullable columns, as fields of Delta's schema. Those that are there stay."""
        for _ in range(_TRIES):
            table = self._load()
            if table is None:
                return
            have = {name["name"] for name in json.loads(table.schema().to_json())["fields"]}
            new = [column for column in columns if column["name"] not in have]
            if not new:
                return
            try:
                fields = Schema.from_json(json.dumps({"type": "struct", "fields": new})).fields
                table.alter.add_columns(fields)
                return
            except CommitFailedError:
                continue
            except DeltaError as exc:
                raise _failure(self.path, exc) from exc

    def compact(self, by: list[str] | None = None) -> tuple[int, int]:
        """(files removed, files written): one per partition that had several, ordered `by` these columns where given.
        Raises TableChanged."""
        before = self.state()
        count: dict[str | None, int] = {}
        for file in before.files.values():
            count[file.partition] = count.get(file.partition, 0) + 1
        crowded = [partition for partition, files in count.items() if files > 1]
        table = self._load()
        if table is None or not crowded:
            return 0, 0
        removed = written = 0
        for partition in crowded:
            chosen = None if self._partition is None else [(self._partition, "=", partition)]
            try:
                table = self._load()
                assert table is not None
                done = table.optimize.z_order(by, chosen) if by else table.optimize.compact(chosen)
            except CommitFailedError as exc:
                raise TableChanged(str(self.path), "somebody replaced rows meanwhile; compact again") from exc
            except DeltaError as exc:
                raise _failure(self.path, exc) from exc
            removed += done["numFilesRemoved"]
            written += done["numFilesAdded"]
        return removed, written

    def vacuum(self, grace_s: float) -> list[str]:
        """Remove files that no version of the last `grace_s` seconds names; returns their names."""
        table = self._load()
        if table is None:
            return []
        hours = max(0, round(grace_s / 3600))
        return list(table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))

    # ---------------------------------------------------------------- parts

    @property
    def _log(self) -> Path:
        return self.path / "_delta_log"

    def _tail(self) -> LogTail | None:
        """The end of the log as it is now; None when there is no table. Raises TableError."""
        known, self._seen = self._seen, None
        if (log := _identity(self._log)) is None:
            return None
        if known is None or known[0] != log or not known[1].advance():
            table = self._load()
            if table is None:
                return None
            protocol = table.protocol()
            plain = is_plain(protocol.min_writer_version, protocol.writer_features)
            known = log, LogTail(self._log, table.version(), table.schema().to_json(), plain)
        self._seen = known
        return known[1]

    def _last(self, tail: LogTail, query: str) -> int:
        if query not in tail.batches:
            table = self._load()
            found = None if table is None else table.transaction_version(query)
            tail.batches[query] = -1 if found is None else int(found)
        return tail.batches[query]

    def _load(self, version: int | None = None) -> DeltaTable | None:
        log = _identity(self._log)
        if log is None:
            self._opened = None
            return None
        try:
            table = self._newest(log) if version is None else DeltaTable(str(self.path), version=version)
        except TableNotFoundError:
            return None
        except DeltaError as exc:
            raise _failure(self.path, exc) from exc
        strange = _UNREADABLE & set(table.protocol().reader_features or ())
        if strange:
            # The list of files leaves out what these features say of them.
            raise TableError(
                str(self.path), f"it uses {', '.join(sorted(strange))}; only Delta's own reader knows that"
            )
        return table

    def _newest(self, log: tuple[int, int]) -> DeltaTable:
        """What was opened before, brought up to date: opening it again would read up to CHECKPOINT_EVERY commits."""
        known, self._opened = self._opened, None
        if known is not None and known[0] == log:
            with contextlib.suppress(DeltaError):  # what it would go on from may have been cleaned up
                known[1].update_incremental()
                self._opened = known
                return known[1]
        table = DeltaTable(str(self.path))
        self._opened = log, table
        return table

    def _state(self, table: DeltaTable) -> State:
        found = pa.table(table.get_add_actions(flatten=True))
        names = found.column_names
        column = f"partition.{self._partition}" if self._partition else None
        parts = found[column].to_pylist() if column in names else [None] * found.num_rows
        rows = found["num_records"].to_pylist() if "num_records" in names else [0] * found.num_rows
        files = {}
        for path, size, count, part in zip(
            found["path"].to_pylist(), found["size_bytes"].to_pylist(), rows, parts, strict=True
        ):
            name = unquote(path)
            files[name] = DataFile(name, count or 0, size, part)
        return State(table.version(), files, table.schema().to_json())

    def _create(self, added: list[DataFile], properties: CommitProperties) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        create_table_with_add_actions(
            str(self.path), Schema.from_json(self._schema), [_add(file, self._partition) for file in added],
            mode="error", partition_by=[self._partition] if self._partition else None, description=self._about,
            configuration={"delta.checkpointInterval": str(CHECKPOINT_EVERY)}, commit_properties=properties,
        )  # fmt: skip

    def _replace(
        self, on: DeltaTable | None, removed: list[DataFile], added: list[DataFile], properties: CommitProperties
    ) -> None:
        """`on` the state that was decided on; where nothing was, on the newest."""
        table = on or self._load()
        assert table is not None
        actions: list[AddAction | RemoveAction] = [
            *(_remove(file, self._partition) for file in removed), *(_add(file, self._partition) for file in added)
        ]  # fmt: skip
        keys = [self._partition] if self._partition else None
        table.create_write_transaction(actions, "append", table.schema(), keys, commit_properties=properties)

    def _settle(self, version: int) -> None:
        _sync([commit_file(self._log, version)])
        if version and version % CHECKPOINT_EVERY == 0 and (table := self._load()) is not None:
            # It only saves readers time: without it they read more commits.
            with contextlib.suppress(DeltaError, OSError):
                table.create_checkpoint()
                table.cleanup_metadata()


def described(root: Path, path: str, partition: str | None = None) -> DataFile:
    """A Parquet file below `root` as a commit names it."""
    found = pq.read_metadata(root / path)
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    for at in range(found.num_columns):
        name = found.schema.column(at).path
        if name not in _SUMMARISED:
            continue
        parts = [found.row_group(group).column(at).statistics for group in range(found.num_row_groups)]
        if parts and all(part is not None and part.has_min_max for part in parts):
            least[name], most[name] = min(part.min for part in parts), max(part.max for part in parts)
    stats = json.dumps({"numRecords": found.num_rows, "minValues": least, "maxValues": most})
    return DataFile(path, found.num_rows, (root / path).stat().st_size, partition, stats)


def _identity(log: Path) -> tuple[int, int] | None:
    """What tells a log from another one that was made in its place; None when there is none."""
    try:
        number = log.stat().st_ino  # which may be used again
    except FileNotFoundError:
        return None
    try:
        return number, (log / f"{0:020d}.json").stat().st_mtime_ns
    except FileNotFoundError:  # cleaned up long ago
        return number, 0


def _properties(batches: Mapping[str, int], told: Mapping[str, str] | None) -> CommitProperties:
    named = [Transaction(query, last) for query, last in batches.items()]
    return CommitProperties(custom_metadata=dict(told or {}), max_commit_retries=0, app_transactions=named or None)


def _entry(file: DataFile, partition: str | None) -> dict[str, Any]:
    values = {partition: file.partition} if partition else {}
    return {"path": file.path, "partitionValues": values, "size": file.size,
            "modificationTime": time.time_ns() // 1_000_000, "dataChange": True, "stats": file.stats}  # fmt: skip


def _add(file: DataFile, partition: str | None) -> AddAction:
    values = {partition: file.partition} if partition else {}
    return AddAction(file.path, file.size, values, time.time_ns() // 1_000_000, True, file.stats)


def _remove(file: DataFile, partition: str | None) -> RemoveAction:
    values = {partition: file.partition} if partition else {}
    return RemoveAction(file.path, True, time.time_ns() // 1_000_000, file.size, values)


def _sync(paths: list[Path]) -> None:
    """Contents, and the directories that name them: what a commit says must survive a power cut."""
    for path in [*paths, *sorted({path.parent for path in paths})]:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _failure(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error
    if "No space left" in str(error) or "os error 28" in str(error) or "Disk quota" in str(error):
        return OSError(errno.ENOSPC, "No space left on device", str(path))
    return TableError(str(path), str(error).strip().splitlines()[0] or type(error).__name__)
