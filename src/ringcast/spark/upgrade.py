"""A lake of an older Ringcast, with manifests of its own, becomes Delta tables. Its data files stay where they are.

The only module that knows the old format: `<table>/v<N>/manifests/<number>.json`, of which every sixteenth holds the
state as a whole. What is converted is the newest version of each table.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from ringcast.record.delta import Delta, TableError, described
from ringcast.record.upgrade import upgrade_recording
from ringcast.spark import catalog
from ringcast.spark.tables.bronze import RESULTS
from ringcast.spark.tables.table import Table

_TRAINING = "gold.training"
"""What `bronze.results` was called."""
_FULL_EVERY = 16


def upgrade(path: str | os.PathLike[str]) -> dict[str, int]:
    """Convert a lake, or a recording: how many files each table names now. Raises TableError, RecordingError."""
    root = Path(path)
    if (root / "commits").is_dir():
        return {str(root): upgrade_recording(root)}
    done = {}
    if (root / _TRAINING).is_dir() and not (root / RESULTS.name).exists():
        (root / _TRAINING).rename(root / RESULTS.name)  # paths in a Delta table's log are relative to it
        done[RESULTS.name] = len(list((root / RESULTS.name).rglob("*.parquet")))
    for table in catalog.tables().values():
        versions = sorted((root / table.name).glob("v[0-9]*/manifests"), key=lambda found: int(found.parent.name[1:]))
        if versions and not (root / table.folder / "_delta_log").is_dir():
            done[table.name] = _table(root / table.folder, table, versions[-1])
            for manifests in versions:
                shutil.rmtree(manifests)
    return done


def _table(root: Path, table: Table, manifests: Path) -> int:
    files = {}
    numbers = sorted(int(found.stem) for found in manifests.glob("[0-9]*.json"))
    first = numbers[-1] - numbers[-1] % _FULL_EVERY if numbers else 0
    for number in range(first, numbers[-1] + 1 if numbers else 0):
        commit = _read(manifests / f"{number:012d}.json")
        if number == first and commit.get("state"):
            files = commit["state"]["files"]
            continue
        for gone in commit.get("removed", []):
            files.pop(gone, None)
        files |= {file["path"]: file for file in commit.get("added", [])}
    below = manifests.parent.relative_to(root)
    named = table.partition_column is not None
    kept = [described(root, str(below / f["path"]), f["partition"] if named else None) for f in files.values()]
    delta = Delta(root, json.dumps(table.stored_schema.jsonValue()), table.partition_column, table.about)
    delta.commit(kept, told={"upgraded": str(below)})
    return len(kept)


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as exc:
        raise TableError(str(path), f"this commit cannot be read ({exc}); restore it from a copy") from exc
