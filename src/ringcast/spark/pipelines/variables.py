"""`variables`: the chunks of variables tags in `bronze.messages` as rows: a name, a value and when it was set.

An incremental chunk has indices and no names: those are in the full packets of the same owner. So each owner's stream
is read as a whole, in the order of its numbers, from its first message in the lake on; values before their names are
left out. A full packet adds what was not known, and repeats nothing. Numbers are in `number`, all others in `text`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ringcast import _core
from ringcast.spark.declaration import own_job
from ringcast.spark.tables.bronze import MESSAGES
from ringcast.spark.tables.columns import BOOL, DOUBLE, LONG, STRING, TIME, columns, join, optional
from ringcast.spark.tables.table import HOURLY, Table

if TYPE_CHECKING:
    from ringcast.spark.jobs import Job

STREAM = ("tag", "publisher", "incarnation", "node")

VARIABLES = Table(
    "silver.variables",
    "values of variables, one row per value that was sent",
    join(
        columns(tag=STRING, publisher=STRING, incarnation=STRING, node=STRING, seq=LONG, name=STRING, type=STRING,
                event_time=TIME, event_ns=LONG, sent_ns=LONG, received_ns=LONG, repeated=BOOL),
        optional(number=DOUBLE, text=STRING),
    ),
    HOURLY,
)  # fmt: skip


def rows(messages: DataFrame) -> DataFrame:
    """The columns of `silver.variables`."""
    chunks = messages.where("codec = 'variables' or (codec = 'view' and tag like '@view/%')")
    once = chunks.dropDuplicates([*STREAM, "seq"])
    found = once.groupBy(*STREAM).applyInPandas(_opened, schema=VARIABLES.schema)
    return found.select(*VARIABLES.columns)


def _opened(chunks: Any) -> Any:
    """One owner's stream. Runs in Spark's Python workers."""
    import pandas as pd  # type: ignore[import-untyped]

    ordered = chunks.sort_values("seq")
    return pd.DataFrame(list(_values(ordered)), columns=[field.name for field in VARIABLES.schema])


def _values(ordered: Any) -> Iterator[tuple[Any, ...]]:
    table = _core.VariableTable()
    for chunk in ordered.itertuples(index=False):
        indices, how, _ = table.apply([bytes(chunk.payload)], [chunk.event_ns])
        times = table.times(indices).tolist()
        kept = zip(indices.tolist(), how.tolist(), times, table.values_at(indices), strict=True)
        for index, mark, event_ns, value in kept:
            if mark & _core.HOW_REMOVED:
                continue
            name = table.name(index) or ""
            number = float(value) if isinstance(value, bool | int | float) else None
            text = None if number is not None else _text(value)
            when = dt.datetime.fromtimestamp(event_ns / 1e9, dt.UTC)
            yield (
                chunk.tag, chunk.publisher, chunk.incarnation, chunk.node, chunk.seq, name, table.type(name) or "",
                when, event_ns, chunk.sent_ns, chunk.received_ns, bool(mark & _core.HOW_REPEATED), number, text,
            )  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value.hex() if isinstance(value, bytes) else value.tolist()).decode()


@own_job("variables", "variables as rows: name, value, event time", reads={"messages": MESSAGES}, writes=VARIABLES)
def variables_job(job: Job) -> None:
    """All that is in the lake: names may be older than the span."""
    job.hold(VARIABLES)
    found = job.within(rows(job.lake.read(MESSAGES)))
    job.write(VARIABLES, found.withColumn("event_time", F.col("event_time").cast("timestamp")), ())
