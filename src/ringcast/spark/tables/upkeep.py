"""Tables about tables: what was refused, what was counted, who wrote what, and how clocks stand."""

from __future__ import annotations

from ringcast.spark.tables.columns import BYTES, DOUBLE, LONG, STRING, TIME, columns, join, optional
from ringcast.spark.tables.table import HOURLY, WHOLE, Table

QUARANTINE = Table(
    "quarantine",
    "rows that were refused, with the reason",
    join(
        columns(event_time=TIME, table=STRING, reason=STRING, run_id=STRING),
        optional(tag=STRING, publisher=STRING, incarnation=STRING, seq=LONG, codec=STRING, payload=BYTES, row=STRING),
    ),
    f"concat(table, '@', {HOURLY})",
)
"""By table and hour, so that a backfill of one table's hours replaces what these put aside, and nothing else."""

QUALITY = Table(
    "quality",
    "how many rows met or failed what was expected",
    columns(event_time=TIME, table=STRING, run_id=STRING, batch=LONG, expectation=STRING, action=STRING, rows=LONG),
    WHOLE,
)

RUNS = Table(
    "runs",
    "what was run, on what, with what result",
    join(
        columns(
            run_id=STRING, pipeline=STRING, code_version=STRING, event_time=TIME, seconds=DOUBLE, state=STRING,
            inputs=STRING, outputs=STRING, counts=STRING,
        ),
        optional(error=STRING),
    ),
    WHOLE,
)  # fmt: skip

CLOCKS = Table(
    "clocks",
    "how far a node's clock is ahead of the base, from an instant of that clock on",
    columns(node=STRING, from_ns=LONG, offset_ns=LONG, drift_ppb=DOUBLE, bound_ns=LONG),
    WHOLE,
)

ALL = (QUARANTINE, QUALITY, RUNS, CLOCKS)
