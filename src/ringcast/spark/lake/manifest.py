"""What a commit says, and what a table holds after a row of them. Pure values.

A manifest adds and removes data files; the state of a table is the fold of its manifests in the order of their
numbers. Every sixteenth also holds the state as a whole, so that a reader opens sixteen small files at most however
long a table has been written to. Invariant: `apply` of the same manifests gives the same state, wherever folding began.
"""

from __future__ import annotations

from typing import Any

import msgspec

FULL_EVERY = 16


class DataFile(msgspec.Struct, frozen=True):
    """One Parquet file: where it lies below the table's version, and what it holds."""

    path: str
    partition: str
    rows: int
    size: int


class State(msgspec.Struct, frozen=True):
    """What a table holds: its files, its schema (Spark's JSON), and the last batch of each query that wrote to it."""

    number: int = -1
    schema: dict[str, Any] | None = None
    files: dict[str, DataFile] = {}
    batches: dict[str, int] = {}

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files.values())

    def has(self, query: str, batch: int) -> bool:
        """Whether this batch is in already. Batches of a query are numbered upwards and committed in order."""
        return self.batches.get(query, -1) >= batch


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One commit. `state` is there in every sixteenth, and is what the table holds after it."""

    number: int
    what: str
    run: str
    schema: dict[str, Any]
    added: list[DataFile] = []
    removed: list[str] = []
    query: str | None = None
    batch: int | None = None
    state: State | None = None


def apply(state: State, manifest: Manifest) -> State:
    """The table after one more commit."""
    if manifest.number != state.number + 1:
        raise ValueError(f"manifest {manifest.number} does not follow {state.number}")
    gone = set(manifest.removed)
    files = {path: file for path, file in state.files.items() if path not in gone}
    files.update((file.path, file) for file in manifest.added)
    batches = dict(state.batches)
    if manifest.query is not None and manifest.batch is not None:
        batches[manifest.query] = manifest.batch
    return State(manifest.number, manifest.schema, files, batches)


def next_manifest(state: State, manifest: Manifest) -> Manifest:
    """`manifest` with the next number, and with the whole state where that is due."""
    numbered = msgspec.structs.replace(manifest, number=state.number + 1, state=None)
    if numbered.number % FULL_EVERY == 0:
        return msgspec.structs.replace(numbered, state=apply(state, numbered))
    return numbered
