"""Writes a recording: rows into a data file, and now and then a commit that makes them count.

One writer at a time (a lock on the directory). Invariant: a stream's numbers only grow. A row whose number was
written before is left out, so that sources that overlap, as a resumed subscription and a pull of what was left
behind do, give every message once. After an error nothing more can be written; what was committed stays.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ringcast.errors import DiskFull, RecordingError
from ringcast.model.closing import Closing
from ringcast.record.bronze import SCHEMA
from ringcast.record.commits import FOOTER, Commit, Span, StreamKey, data_path, is_old, schema_path
from ringcast.record.delta import TableError, described
from ringcast.record.recording import Recording, bronze_table

FULL = (errno.ENOSPC, errno.EDQUOT)
# A row group of its own for every batch that happens to come would make many small ones.
_GROUP_ROWS = 100_000
_GROUP_BYTES = 64 * 1024 * 1024
_REPEATING = ["tag", "publisher", "incarnation", "node", "every", "codec", "schema_id", "lost"]


class RecordingWriter(Closing):
    """Raises RecordingError: somebody else records there, or it is no place to write to."""

    def __init__(self, path: str | os.PathLike[str], now_ns: Callable[[], int] = time.time_ns) -> None:
        self.root = Path(path)
        self._now_ns = now_ns
        self._file: pq.ParquetWriter | None = None
        self._spans: dict[StreamKey, dict[str, Any]] = {}
        self._rows = 0
        self._group: list[pa.RecordBatch] = []
        self._group_rows = self._group_bytes = 0
        try:
            if is_old(self.root):
                raise RecordingError(
                    str(self.root), "an older Ringcast wrote it; convert it once: ringcast pipeline upgrade DIR"
                )
            for name in ("data", "schemas"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            self._failed(exc, committed=0)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._lock)
            raise RecordingError(str(self.root), "another recorder writes to it; give this one another --out") from exc
        self._table = bronze_table(self.root)
        try:
            if not self._table.exists():
                self._table.commit([])
        except (OSError, TableError) as exc:
            os.close(self._lock)
            self._failed(exc, committed=0)
        recording = Recording(self.root)
        self.committed = recording.rows
        self._next = recording.positions()
        self._number = max((commit.number for commit in recording.commits), default=0) + 1
        self._remove_remains()
        while data_path(self.root, self._number).exists():
            self._number += 1

    def positions(self) -> dict[StreamKey, int]:
        """Per stream, the number that is to come next: committed or about to be."""
        return dict(self._next)

    @property
    def pending(self) -> int:
        """Rows written and not committed."""
        return self._rows

    def add_schema(self, schema_id: str, description: Mapping[str, Any]) -> None:
        """Keep what rows are going to name. Raises RecordingError."""
        path = schema_path(self.root, schema_id)
        if not path.exists():
            self._write_whole(path, msgspec.json.encode(description))

    def write(self, batch: pa.RecordBatch) -> int:
        """Rows of the bronze schema; returns how many were new. Raises RecordingError, DiskFull."""
        batch = self._only_new(batch)
        if not batch.num_rows:
            return 0
        self._rows += batch.num_rows
        self._group.append(batch)
        self._group_rows += batch.num_rows
        self._group_bytes += batch.nbytes
        if self._group_rows >= _GROUP_ROWS or self._group_bytes >= _GROUP_BYTES:
            self._write_group()
        return int(batch.num_rows)

    def _write_group(self) -> None:
        group, self._group = self._group, []
        self._group_rows = self._group_bytes = 0
        try:
            if self._file is None:
                self._file = pq.ParquetWriter(
                    self._part, SCHEMA, compression="zstd", compression_level=1, use_dictionary=_REPEATING,
                    write_statistics=["seq", "event_ns", "sent_ns"], store_schema=False,
                )  # fmt: skip
            self._file.write_table(pa.Table.from_batches(group, SCHEMA), row_group_size=_GROUP_ROWS * 2)
        except OSError as exc:
            self._failed(exc, self.committed)

    def commit(self) -> Commit | None:
        """Make everything written so far count; None when there is nothing. Raises RecordingError, DiskFull."""
        if self._group:
            self._write_group()
        if self._file is None:
            return None
        number, path = self._number, data_path(self.root, self._number)
        name = str(path.relative_to(self.root))
        commit = Commit(
            number=number, file=name, rows=self._rows, bytes=0, committed_ns=self._now_ns(),
            spans=[Span(**fields) for fields in self._spans.values()],
        )  # fmt: skip
        try:
            self._file.add_key_value_metadata({FOOTER: msgspec.json.encode(commit).decode()})
            self._file.close()
            self._file = None
            _sync(self._part)
            os.rename(self._part, path)
            _sync(path.parent)
            file = described(self.root, name)
            self._table.commit([file], told={"rows": str(file.rows)})
        except (OSError, TableError) as exc:
            with contextlib.suppress(OSError):
                path.unlink()
            self._failed(exc, self.committed)
        commit = msgspec.structs.replace(commit, bytes=file.size)
        self.committed += self._rows
        self._number += 1
        self._rows = 0
        self._spans = {}
        return commit

    def close(self) -> None:
        """Let go of the directory. What was not committed is gone."""
        self._abandon()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # ---------------------------------------------------------------- parts

    @property
    def _part(self) -> Path:
        return self.root / "data" / f"{self._number:08d}.part"

    def _only_new(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # Streams come in few runs, if not in one; each is looked at as a whole.
        incarnations = batch["incarnation"].dictionary_encode()
        codes = incarnations.indices.to_numpy(zero_copy_only=False)
        seq = batch["seq"].to_numpy()
        lost = batch["lost"].to_numpy()
        keep = np.ones(len(seq), np.bool_)
        for code in range(len(incarnations.dictionary)):
            rows = np.flatnonzero(codes == code) if len(incarnations.dictionary) > 1 else np.arange(len(seq))
            head = batch.slice(int(rows[0]), 1).to_pylist()[0]
            key = StreamKey(head["tag"], head["publisher"], head["incarnation"])
            new = rows[seq[rows] >= self._next.get(key, 0)]
            keep[rows] = False
            keep[new] = True
            if len(new):
                self._note(key, head, seq[new], int(lost[new].sum()))
        return batch if keep.all() else batch.filter(pa.array(keep))

    def _note(self, key: StreamKey, head: dict[str, Any], seq: Any, lost: int) -> None:
        last = int(seq[-1])
        self._next[key] = last + 1
        span = self._spans.get(key)
        if span is None:
            named = {
                name: head[name] for name in ("tag", "publisher", "incarnation", "node", "every", "codec", "schema_id")
            }
            span = self._spans[key] = {**named, "first": int(seq[0]), "last": last, "rows": 0, "lost": 0}
        span["last"] = last
        span["rows"] += len(seq)
        span["lost"] += lost

    def _write_whole(self, path: Path, text: bytes) -> None:
        part = path.with_suffix(".part")
        try:
            part.write_bytes(text)
            _sync(part)
            os.rename(part, path)
            _sync(path.parent)
        except OSError as exc:
            with contextlib.suppress(OSError):
                part.unlink()
            self._failed(exc, self.committed)

    def _remove_remains(self) -> None:
        """A recorder that was killed leaves a part of a file, or a file whose commit never came."""
        named = self._table.state().files
        for path in (self.root / "data").iterdir():
            if str(path.relative_to(self.root)) not in named:
                path.unlink()

    def _abandon(self) -> None:
        self._group = []
        if self._file is not None:
            with contextlib.suppress(OSError):  # it cannot even write its end
                self._file.close()
            self._file = None
        with contextlib.suppress(OSError):
            self._part.unlink()

    def _failed(self, error: OSError | TableError, committed: int) -> NoReturn:
        if hasattr(self, "_number"):
            self._abandon()
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(str(self.root), committed) from error
        raise RecordingError(str(self.root), f"it cannot be written ({error})") from error


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
