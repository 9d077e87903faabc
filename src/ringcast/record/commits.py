"""What a recording is on disk, as values and file names. A recording is a Delta table, so that anybody can read it.

    DIR/_delta_log/...            which data files count (`record.delta`)
    DIR/data/00000001.parquet     rows of the bronze schema; its footer holds a Commit: which numbers of which streams
    DIR/schemas/<id>.json         the schemas that rows name by `schema_id`
    DIR/lock                      held by the recorder that writes

A data file counts once the log names it, and never changes afterwards: a reader sees all of a commit or nothing. Where
a recorder goes on is what the data files say, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from ringcast.errors import RecordingError

VERSION = 1
FOOTER = "ringcast.commit"
"""The key of a Commit in a data file's footer."""


class StreamKey(NamedTuple):
    """One publisher's numbers. `incarnation` as in the bronze schema."""

    tag: str
    publisher: str
    incarnation: str


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one stream in one data file."""

    tag: str
    publisher: str
    incarnation: str
    node: str
    first: int
    last: int
    rows: int
    lost: int = 0
    every: int = 1
    codec: str = "bytes"
    schema_id: str | None = None

    @property
    def key(self) -> StreamKey:
        return StreamKey(self.tag, self.publisher, self.incarnation)


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    file: str
    rows: int
    bytes: int
    committed_ns: int
    spans: list[Span]
    version: int = VERSION


def data_path(root: Path, number: int) -> Path:
    return root / "data" / f"{number:08d}.parquet"


def schema_path(root: Path, schema_id: str) -> Path:
    return root / "schemas" / f"{schema_id}.json"


def is_old(root: Path) -> bool:
    """Whether an older Ringcast wrote it, with a folder of commits in the place of Delta's log."""
    return (root / "commits").is_dir() and not (root / "_delta_log").is_dir()


def decode_untrusted(path: Path, text: bytes) -> Commit:
    """Raises RecordingError."""
    try:
        commit = msgspec.json.decode(text, type=Commit)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise RecordingError(str(path), f"this is no commit of a recording ({exc})") from exc
    if commit.version > VERSION:
        raise RecordingError(str(path), f"it was written by a newer Ringcast (version {commit.version})")
    return commit


def positions(commits: Iterable[Commit]) -> dict[StreamKey, int]:
    """Per stream, the number that follows the last one recorded."""
    found: dict[StreamKey, int] = {}
    for commit in commits:
        for span in commit.spans:
            found[span.key] = max(found.get(span.key, 0), span.last + 1)
    return found
