"""A lake of an older Ringcast, with manifests of its own, becomes Delta tables. Its data files are not copied.

The only module that knows the old format: `<table>/v<N>/manifests/<number>.json`, of which every sixteenth holds the
state as a whole. The newest version of each table becomes the table, whether or not a pipeline declares it; those
before become tables beside it, `<table>@old<N>`. Done again after a crash, it goes on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
from deltalake import Schema

from ringcast.record.delta import Delta, TableError, described
from ringcast.record.upgrade import upgrade_recording
from ringcast.spark import catalog
from ringcast.spark.tables.bronze import RESULTS

_TRAINING = "gold.training"
"""What `bronze.results` was called."""
_FULL_EVERY = 16
_ALL = "all"
_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d")


def upgrade(path: str | os.PathLike[str]) -> dict[str, int]:
    """Convert a lake, or a recording: how many files each table names now. Raises TableError, RecordingError."""
    root = Path(path)
    if (root / "commits").is_dir():
        return {str(root): upgrade_recording(root)}
    done = {}
    if (root / _TRAINING).is_dir() and not (root / RESULTS.name).exists():
        (root / _TRAINING).rename(root / RESULTS.name)  # paths in a Delta table's log are relative to it
        done[RESULTS.name] = len(list((root / RESULTS.name).rglob("*.parquet")))
    for table in sorted({found.parents[1] for found in root.glob("*/v[0-9]*/manifests")}):
        *older, newest = sorted(table.glob("v[0-9]*/manifests"), key=lambda found: int(found.parent.name[1:]))
        for manifests in older:
            # Out of the table's folder, where what it does not name is taken for rubbish.
            version = manifests.parent
            files = _convert(version, manifests, declared=False)
            beside = table.with_name(f"{table.name}@old{version.name[1:]}")
            os.rename(version, beside)
            shutil.rmtree(beside / "manifests")
            done[beside.name] = files
        done[table.name] = _convert(table, newest, declared=True)
        shutil.rmtree(newest)
    return done


def _convert(root: Path, manifests: Path, declared: bool) -> int:
    """The files of one version as a Delta table at `root`, by the declared schema or by that of its files."""
    files = _files(manifests)
    below = manifests.parent.relative_to(root)
    known = catalog.tables().get(root.name) if declared else None
    if known is not None:
        column, schema, about = known.partition_column, json.dumps(known.stored_schema.jsonValue()), known.about
    else:
        column, about = _partitioned(files), "of an older Ringcast"
        schema = _schema(manifests.parent, files, column)
    delta = Delta(root, schema, column, about)
    if not delta.exists():
        kept = [described(root, str(below / f["path"]), f["partition"] if column else None) for f in files.values()]
        delta.commit(kept, told={"upgraded": str(below)})
    return len(files)


def _files(manifests: Path) -> dict[str, dict[str, Any]]:
    """What the last manifest means: files by their paths."""
    files: dict[str, dict[str, Any]] = {}
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
    return files


def _partitioned(files: dict[str, dict[str, Any]]) -> str | None:
    """How `Table.partition_column` would call it."""
    names = {str(file["partition"]) for file in files.values()}
    if names <= {_ALL}:
        return None
    return "hour" if all(_HOUR.fullmatch(name) for name in names) else "part"


def _schema(version: Path, files: dict[str, dict[str, Any]], column: str | None) -> str:
    if not files:
        return json.dumps({"type": "struct", "fields": []})
    found = json.loads(Schema.from_arrow(pq.read_schema(version / next(iter(files)))).to_json())
    if column is not None:
        found["fields"].append({"name": column, "type": "string", "nullable": True, "metadata": {}})
    return json.dumps(found)


def _read(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as exc:
        raise TableError(str(path), f"this commit cannot be read ({exc}); restore it from a copy") from exc
