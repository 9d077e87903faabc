"""A recording as its readers see it: commits, streams, and rows by number. Never writes.

`refresh` looks for commits that came since; everything known already stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from ringcast.errors import RecordingError
from ringcast.model.tag import matches
from ringcast.record.bronze import SCHEMA
from ringcast.record.commits import FOOTER, Commit, Span, StreamKey, decode_untrusted, is_old, positions, schema_path
from ringcast.record.delta import Delta, TableError

BATCH_ROWS = 50_000
_COMMIT = re.compile(r"\d{20}\.json")
_NAMED = ["tag", "publisher", "incarnation", "node", "every", "codec", "schema_id"]


class Recording:
    """Raises RecordingError when there is none at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.root = Path(path)
        self._commits: dict[str, Commit] = {}
        self._version = -1
        if is_old(self.root):
            raise RecordingError(
                str(self.root), "an older Ringcast wrote it; convert it once: ringcast pipeline upgrade DIR"
            )
        if not (self.root / "_delta_log").is_dir():
            raise RecordingError(str(self.root), "there is no recording; make one with 'ringcast record TAG --out DIR'")
        self.refresh()

    @property
    def commits(self) -> list[Commit]:
        return list(self._commits.values())

    @property
    def rows(self) -> int:
        return sum(commit.rows for commit in self._commits.values())

    def refresh(self) -> list[Commit]:
        """Commits that came since the last look, in order. Raises RecordingError."""
        newest = _newest(self.root)
        if newest == self._version:
            return []
        try:
            state = bronze_table(self.root).state()
        except TableError as exc:
            raise RecordingError(str(self.root), exc.reason) from exc
        self._version = state.version
        new = []
        for path in sorted(state.files):
            if path not in self._commits:
                new.append(_commit_of(self.root / path, path))
                self._commits[path] = new[-1]
        # Files that somebody put together are not read beside those that they were made of.
        held = [(path, commit) for path, commit in self._commits.items() if path in state.files]
        self._commits = dict(sorted(held, key=lambda one: (one[1].number, one[0])))
        return new

    def positions(self) -> dict[StreamKey, int]:
        return positions(self._commits.values())

    def spans(self, pattern: str | None = "**") -> Iterator[tuple[Commit, Span]]:
        """What is recorded of the tags that match; names that begin with @ only for a pattern that does, too. None is
        all that was recorded."""
        for commit in self._commits.values():
            for span in commit.spans:
                if pattern is None or matches(pattern, span.tag):
                    yield commit, span

    def path_of(self, commit: Commit) -> Path:
        return self.root / commit.file

    def schema(self, schema_id: str) -> dict[str, Any]:
        """The schema that rows name so. Raises RecordingError."""
        path = schema_path(self.root, schema_id)
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError) as exc:
            raise RecordingError(str(self.root), f"schema {schema_id} is not readable ({exc})") from exc

    def batches(self, commit: Commit) -> Iterator[pa.RecordBatch]:
        """The rows of one commit in the order of their arrival. Raises RecordingError."""
        try:
            with pq.ParquetFile(self.path_of(commit)) as file:
                for batch in file.iter_batches(BATCH_ROWS):
                    yield _as_declared(batch)
        except (OSError, pa.ArrowException) as exc:
            raise RecordingError(str(self.path_of(commit)), f"it cannot be read ({exc})") from exc

    def _in_order(self, commit: Commit) -> Iterator[pa.RecordBatch]:
        """Of a file that another program put together, in which streams need not be in order."""
        whole = pa.Table.from_batches(list(self.batches(commit)), SCHEMA)
        yield from whole.sort_by([("incarnation", "ascending"), ("seq", "ascending")]).to_batches()

    def read(self, incarnation: str, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The rows of one stream with numbers from `first` to `last`, in order. Raises RecordingError."""
        for commit in self._commits.values():
            held = [s for s in commit.spans if s.incarnation == incarnation and s.first <= last and s.last >= first]
            if not held:
                continue
            whole = len(commit.spans) == 1 and first <= held[0].first and held[0].last <= last
            for batch in self.batches(commit) if commit.number else self._in_order(commit):
                chosen = batch if whole else batch.filter(_between(batch, incarnation, first, last))
                if chosen.num_rows:
                    yield chosen


def bronze_table(root: Path) -> Delta:
    """A recording's table."""
    return Delta(root, Schema.from_arrow(SCHEMA).to_json(), about="messages as received")


def _newest(root: Path) -> int:
    """The table's last version, by the names in its log: a look that costs next to nothing."""
    return max((int(name[:20]) for name in os.listdir(root / "_delta_log") if _COMMIT.fullmatch(name)), default=-1)


def _commit_of(path: Path, name: str) -> Commit:
    """What a data file says of itself; of one that another program wrote, what its rows say."""
    try:
        with pq.ParquetFile(path) as file:
            told = (file.metadata.metadata or {}).get(FOOTER.encode())
            if told is not None:
                commit = decode_untrusted(path, told)
                return msgspec.structs.replace(commit, file=name, bytes=path.stat().st_size)
            columns = file.read([*_NAMED, "seq", "lost"])
    except (OSError, pa.ArrowException) as exc:
        raise RecordingError(str(path), f"it cannot be read ({exc})") from exc
    sums = columns.group_by(_NAMED).aggregate([("seq", "min"), ("seq", "max"), ("seq", "count"), ("lost", "sum")])
    spans = [
        Span(first=row["seq_min"], last=row["seq_max"], rows=row["seq_count"], lost=row["lost_sum"],
             **{key: row[key] for key in _NAMED})
        for row in sums.to_pylist()
    ]  # fmt: skip
    spans.sort(key=lambda span: span.key)
    return Commit(number=0, file=name, rows=columns.num_rows, bytes=path.stat().st_size, committed_ns=0, spans=spans)


def _between(batch: pa.RecordBatch, incarnation: str, first: int, last: int) -> Any:
    seq = batch["seq"]
    inside = pc.and_(pc.greater_equal(seq, first), pc.less_equal(seq, last))
    return pc.and_(inside, pc.equal(batch["incarnation"], incarnation))


def _as_declared(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that a later version added are left out; the order and nullability are the schema's."""
    return pa.RecordBatch.from_arrays(
        [batch[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA
    )
