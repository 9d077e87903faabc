"""What experiments and benchmarks find, one value a row, in one schema and as a Delta table. No Spark, no Java.

| column | |
|---|---|
| experiment | what was run: `push-pull`, `adamant`, `bench spark` |
| configuration | flat JSON: what was chosen, and under which conditions |
| repetition | from 0; values of one repetition were measured one after the other |
| metric, value, unit | several values of one metric in one repetition are its samples |
| machine, version | what it ran on, and which Ringcast: its version and a digest of its code |
| run_id, measured_at | which run of the experiment, and when that was |

The table is `bronze.results` of a lake: pipelines make everything else of it (`ringcast.spark.pipelines`).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ringcast.record.delta import Delta, described
from ringcast.record.figures import Measured
from ringcast.record.machine import code_version, this_machine

TABLE = "bronze.results"
ABOUT = "what experiments and benchmarks measured, one value per row"
PARTITION = "part"
SCHEMA = pa.schema(
    [
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("configuration", pa.string(), nullable=False),
        pa.field("repetition", pa.int32(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
        pa.field("unit", pa.string(), nullable=False),
        pa.field("machine", pa.string(), nullable=False),
        pa.field("version", pa.string(), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("measured_at", pa.timestamp("us", "UTC"), nullable=True),
    ]
)
_KINDS = {"string": "string", "int32": "integer", "double": "double", "timestamp[us, tz=UTC]": "timestamp"}


def keep(rows: Iterable[Measured], lake: str | os.PathLike[str], *, machine: str = "", version: str = "") -> int:
    """Append a run's values to `bronze.results` of a lake; returns how many. A value that is no number (NaN) is left
    out: nothing was measured. Raises TableError, OSError."""
    found = [row for row in rows if not math.isnan(row.value)]
    if not found:
        return 0
    root = Path(lake).absolute() / TABLE
    now, who = dt.datetime.now(dt.UTC), version or code_version()
    where = machine or this_machine()
    files = []
    for experiment in sorted({row.experiment for row in found}):
        run = f"{experiment.replace(' ', '-')}-{uuid.uuid4().hex[:12]}"
        own = [row for row in found if row.experiment == experiment]
        table = pa.table(
            [
                [experiment] * len(own), [_flat(row.configuration) for row in own], [row.repetition for row in own],
                [row.metric for row in own], [float(row.value) for row in own], [row.unit for row in own],
                [where] * len(own), [who] * len(own), [run] * len(own), [now] * len(own),
            ],
            schema=SCHEMA,
        )  # fmt: skip
        path = f"data/{uuid.uuid4().hex}.parquet"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / path, compression="zstd", store_schema=False)
        files.append(described(root, path, experiment))
    Delta(root, _stored_schema(), PARTITION, ABOUT).commit(files, told={"what": "append", "run": "measured"})
    return len(found)


def _flat(configuration: Mapping[str, str | float]) -> str:
    # Sorted, so that equal configurations are equal texts.
    return json.dumps(configuration, sort_keys=True, ensure_ascii=False)


def _stored_schema() -> str:
    fields = [
        {"name": field.name, "type": _KINDS[str(field.type)], "nullable": field.nullable, "metadata": {}}
        for field in SCHEMA
    ]
    fields.append({"name": PARTITION, "type": "string", "nullable": True, "metadata": {}})
    return json.dumps({"type": "struct", "fields": fields})
