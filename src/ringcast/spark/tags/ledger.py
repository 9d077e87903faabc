"""What a sink has published, on disk: so that a batch that Spark runs again is not published again.

    DIR/state.json      the last batch of which everything was published, and whose query it was
    DIR/staged.arrow    the rows of the batch that is being published, and the ring and number they begin at
    DIR/begun           that the first of them was sent
    DIR/lock            held while a batch is published

Before anything is sent its rows are staged with the incarnation and the number of the first. Whoever finds staged rows
compares with the ring, which outlives its publisher: what is in it was sent, and only the rest is sent then. The lock
is for a worker that outlives its driver and is still publishing when the next one comes.
Must not know Spark: rows and numbers in, rows and numbers out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import msgspec
import pyarrow as pa

ROWS = pa.schema([pa.field("payload", pa.binary(), nullable=False), pa.field("event_ns", pa.int64())])


class State(msgspec.Struct, frozen=True):
    query: str = ""
    batch: int = -1
    published: int = 0


class Staged(NamedTuple):
    query: str
    batch: int
    incarnation: int
    first: int
    rows: pa.Table
    begun: bool


class Ledger:
    """In a directory of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def locked(self) -> Iterator[Ledger]:
        self._path.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield self
        finally:
            os.close(fd)

    def state(self, query: str) -> State:
        """What this query has published; another one's state is nothing to it."""
        try:
            found = msgspec.json.decode((self._path / "state.json").read_bytes(), type=State)
        except FileNotFoundError:
            return State(query)
        return found if found.query == query else State(query)

    def staged(self, query: str, batch: int) -> Staged | None:
        """Rows of that batch that somebody began to publish, or was about to."""
        try:
            with pa.OSFile(str(self._path / "staged.arrow")) as file, pa.ipc.open_file(file) as reader:
                rows = reader.read_all()
        except FileNotFoundError:
            return None
        meta = rows.schema.metadata
        found = Staged(
            meta[b"query"].decode(), int(meta[b"batch"]), int(meta[b"incarnation"]), int(meta[b"first"]), rows,
            self._begun.exists(),
        )  # fmt: skip
        return found if (found.query, found.batch) == (query, batch) else None

    def stage(self, query: str, batch: int, incarnation: int, first: int, rows: pa.Table) -> None:
        meta = {"query": query, "batch": str(batch), "incarnation": str(incarnation), "first": str(first)}
        part = self._path / "staged.part"
        self._begun.unlink(missing_ok=True)
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, ROWS.with_metadata(meta)) as writer:
            writer.write_table(rows.replace_schema_metadata(meta))
        self._put(part, self._path / "staged.arrow")

    def begin(self) -> None:
        """The first row was sent. From now on its ring outlives its publisher, so if it is not found it was lost."""
        self._begun.touch()

    def done(self, state: State) -> None:
        part = self._path / "state.part"
        part.write_bytes(msgspec.json.encode(state))
        self._put(part, self._path / "state.json")
        (self._path / "staged.arrow").unlink(missing_ok=True)
        self._begun.unlink(missing_ok=True)

    @property
    def _begun(self) -> Path:
        return self._path / "begun"

    @staticmethod
    def _put(part: Path, path: Path) -> None:
        fd = os.open(part, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(part, path)


def unsent(staged: Staged, newest: int | None) -> tuple[pa.Table, int]:
    """(the rows that were not sent, how many of the others may not have been). `newest` is the last number in the ring
    they were sent to; None when that ring is gone. Nothing is sent twice, so what cannot be known counts as sent."""
    if newest is not None:
        sent = min(max(newest + 1 - staged.first, 0), staged.rows.num_rows)
        return staged.rows.slice(sent), 0
    if not staged.begun:  # a ring that nothing was sent to is not kept
        return staged.rows, 0
    return staged.rows.slice(staged.rows.num_rows), max(0, staged.rows.num_rows - 1)


def local_path(location: str) -> Path | None:
    """A directory of this machine; None for anything else."""
    parsed = urlparse(location)
    if parsed.scheme in ("", "file"):
        return Path(unquote(parsed.path) if parsed.scheme else location)
    return None
