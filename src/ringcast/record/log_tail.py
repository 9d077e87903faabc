"""The end of a Delta table's log, read commit by commit: what somebody who only adds rows must know of a table.

`deltalake` looks at the whole log and at the entry of every file to commit anything, so that a table that was committed
to thousands of times takes ever longer. An append needs less: the newest version, the schema, and how far each query
has come. Here only commits that came since the last look are read, and an append is one file put where none is.
Invariant: a commit appears whole or not at all, and never in another's place. Tables with features that ask more of a
writer than Delta's second writer version are not `plain`, and left to `deltalake`.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

PLAIN_VERSION = 2
_PLAIN_FEATURES = {"appendOnly", "invariants"}
_OF_FILES = (b'{"add"', b'{"remove"', b'{"cdc"')
"""How lines begin that tell of files: most of a log, and nothing that is asked for here."""


class LogTail:
    """From a version on, whose schema and writers' version are given."""

    def __init__(self, log: Path, version: int, schema: str, plain: bool) -> None:
        self.version, self.schema, self.plain = version, schema, plain
        self.batches: dict[str, int] = {}
        """The last batch of each query that was seen or asked for."""
        self._log = log

    def advance(self) -> bool:
        """Read what came since. False when that cannot be known: commits were cleaned up, this version's with them."""
        while True:
            try:
                self._read(commit_file(self._log, self.version + 1).read_bytes())
            except FileNotFoundError:
                # Commits are cleaned up from the first on: while this version's is there, no later one was.
                return commit_file(self._log, self.version).exists()
            self.version += 1

    def _read(self, commit: bytes) -> None:
        for line in commit.splitlines():
            if not line or line.startswith(_OF_FILES):
                continue
            action: dict[str, Any] = json.loads(line)
            if found := action.get("txn"):
                self.batches[found["appId"]] = int(found["version"])
            elif found := action.get("metaData"):
                self.schema = found["schemaString"]
            elif found := action.get("protocol"):
                self.plain = is_plain(found["minWriterVersion"], found.get("writerFeatures"))


def is_plain(writer_version: int, features: Sequence[str] | None) -> bool:
    """Whether an append needs no more than its own entries."""
    return writer_version <= PLAIN_VERSION or (writer_version == 7 and set(features or ()) <= _PLAIN_FEATURES)


def commit_file(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def append(
    log: Path, version: int, added: Sequence[Mapping[str, Any]], batches: Mapping[str, int], told: Mapping[str, str]
) -> None:
    """Make that version: these files are added, these batches of queries are done. Raises FileExistsError when somebody
    else made it, OSError when the disk is full."""
    now = time.time_ns() // 1_000_000
    said = {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": "Append"}, **told}
    actions: list[dict[str, Any]] = [{"commitInfo": said}]
    actions += [{"txn": {"appId": name, "version": last, "lastUpdated": now}} for name, last in batches.items()]
    actions += [{"add": {**one, "path": quote(one["path"], safe="/=")}} for one in added]
    draft = log / f".{uuid.uuid4().hex}.tmp"
    try:
        with open(draft, "xb") as file:
            file.write("\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, commit_file(log, version))  # fails where there is one, which a rename would replace
    finally:
        draft.unlink(missing_ok=True)
    fd = os.open(log, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
