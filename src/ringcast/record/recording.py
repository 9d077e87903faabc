"""A recording as its readers see it: commits, streams, and rows by number. Never writes.

`refresh` looks for commits that came since; everything known already stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ringcast.errors import RecordingError
from ringcast.model.tag import matches
from ringcast.record.bronze import SCHEMA
from ringcast.record.commits import Commit, Span, StreamKey, decode_untrusted, positions, schema_path

BATCH_ROWS = 50_000


class Recording:
    """Raises RecordingError when there is none at `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.root = Path(path)
        self._commits: dict[str, Commit] = {}
        if not (self.root / "commits").is_dir():
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
        new = []
        for name in sorted(os.listdir(self.root / "commits")):
            if name.endswith(".json") and name not in self._commits:
                path = self.root / "commits" / name
                new.append(decode_untrusted(path, path.read_bytes()))
                self._commits[name] = new[-1]
        return new

    def positions(self) -> dict[StreamKey, int]:
        return positions(self._commits.values())

    def spans(self, pattern: str = "**") -> Iterator[tuple[Commit, Span]]:
        """What is recorded of the tags that match; names that begin with @ only for a pattern that does, too."""
        for commit in self._commits.values():
            for span in commit.spans:
                if matches(pattern, span.tag):
                    yield commit, span

    def path_of(self, commit: Commit) -> Path:
        return self.root / "data" / commit.file

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

    def read(self, incarnation: str, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The rows of one stream with numbers from `first` to `last`, in order. Raises RecordingError."""
        for commit in self._commits.values():
            held = [s for s in commit.spans if s.incarnation == incarnation and s.first <= last and s.last >= first]
            if not held:
                continue
            whole = len(commit.spans) == 1 and first <= held[0].first and held[0].last <= last
            for batch in self.batches(commit):
                chosen = batch if whole else batch.filter(_between(batch, incarnation, first, last))
                if chosen.num_rows:
                    yield chosen


def _between(batch: pa.RecordBatch, incarnation: str, first: int, last: int) -> Any:
    seq = batch["seq"]
    inside = pc.and_(pc.greater_equal(seq, first), pc.less_equal(seq, last))
    return pc.and_(inside, pc.equal(batch["incarnation"], incarnation))


def _as_declared(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Columns that a later version added are left out; the order and nullability are the schema's."""
    return pa.RecordBatch.from_arrays(
        [batch[name].cast(SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA
    )
