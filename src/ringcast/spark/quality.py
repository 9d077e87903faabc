"""What is expected of a table's rows, as data, and what becomes of rows that fail it.

An expectation is a name, an SQL expression that holds for good rows (null does not hold) and an action: `keep` only
counts, `quarantine` moves the row aside with the reason, `fail` stops the run. Invariant: every row that comes in is in
the table or in quarantine, and `quality` has the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.errors import RingcastError
from ringcast.spark.tables.table import Table
from ringcast.spark.tables.upkeep import QUARANTINE

Action = Literal["keep", "quarantine", "fail"]


@dataclass(frozen=True)
class Expectation:
    name: str
    holds: str
    action: Action


class ExpectationFailed(RingcastError):
    """A row broke an expectation that stops a run; nothing was committed."""

    def __init__(self, table: str, expectation: str, rows: int) -> None:
        self.table = table
        self.expectation = expectation
        self.rows = rows
        super().__init__(
            f"{rows} rows for {table} break {expectation!r}, which stops the run; nothing was written. Look at the "
            "input, or make the expectation 'quarantine' to go on without them"
        )


DECODES = Expectation("decodes", "rejected is null", "quarantine")

SILVER: tuple[Expectation, ...] = (
    DECODES,
    Expectation("sequence is not negative", "seq >= 0", "quarantine"),
    Expectation("sent after the event", "sent_ns >= event_ns", "keep"),
    Expectation("received after it was sent", "received_ns >= sent_ns", "keep"),
)
"""Of every refined message. The times are only counted: a clock that is off is for `clocks` to mend."""


def judge(rows: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """The rows, with the names of what they fail in `_failed`."""
    if "rejected" not in rows.columns:
        rows = rows.withColumn("rejected", F.lit(None).cast("string"))
    names = [F.when(~F.coalesce(F.expr(e.holds), F.lit(False)), F.lit(e.name)) for e in expectations]
    failed = F.filter(F.array(*names), lambda name: name.isNotNull()) if names else F.array().cast("array<string>")
    return rows.withColumn("_failed", failed)


def kept(judged: DataFrame, expectations: Sequence[Expectation], table: Table) -> DataFrame:
    """The table's rows. Columns beyond the declared ones are not kept."""
    extra = [c for c in table.columns if c in judged.columns]
    return judged.where(~_refused(expectations)).select(*extra)


def rejected(judged: DataFrame, expectations: Sequence[Expectation], table: Table, run: str) -> DataFrame:
    """Rows for `quarantine`: what they are, why they are there, and the row itself as JSON but for its payload."""
    why = F.concat_ws("; ", F.concat_ws(", ", "_failed"), "rejected")
    optional = {
        name: F.col(name) if name in judged.columns else F.lit(None)
        for name in ("tag", "publisher", "incarnation", "seq", "codec", "payload")
    }
    plain = [c for c in table.columns if c in judged.columns and c not in ("data", "payload")]
    when = F.col("event_time") if "event_time" in judged.columns else F.timestamp_seconds(F.lit(0))
    return judged.where(_refused(expectations)).select(
        when.alias("event_time"),
        F.lit(table.name).alias("table"),
        why.alias("reason"),
        F.lit(run).alias("run_id"),
        *(column.cast(QUARANTINE.schema[name].dataType).alias(name) for name, column in optional.items()),
        F.to_json(F.struct(*plain)).alias("row"),
    )


def count(judged: DataFrame, expectations: Sequence[Expectation]) -> dict[str, int]:
    """How many rows fail each expectation, under `rows` how many there are, and where readers counted it, how many
    messages were `lost` before them. One pass."""
    sums = [
        F.coalesce(F.sum(F.array_contains("_failed", e.name).cast("bigint")), F.lit(0)).alias(f"_{at}")
        for at, e in enumerate(expectations)
    ]
    counted = "lost" in judged.columns
    lost = F.coalesce(F.sum("lost"), F.lit(0)) if counted else F.lit(0)
    found = judged.agg(F.count("*").alias("rows"), lost.alias("lost"), *sums).first()
    assert found is not None
    failed = {e.name: found[f"_{at}"] for at, e in enumerate(expectations)}
    return {"rows": found["rows"], **failed, **({"lost": found["lost"]} if counted else {})}


def enforce(counts: dict[str, int], expectations: Sequence[Expectation], table: Table) -> None:
    """Raises ExpectationFailed for the first `fail` that rows break."""
    for expectation in expectations:
        if expectation.action == "fail" and counts[expectation.name]:
            raise ExpectationFailed(table.name, expectation.name, counts[expectation.name])


def _refused(expectations: Sequence[Expectation]) -> Column:
    names = [e.name for e in expectations if e.action == "quarantine"]
    return F.arrays_overlap("_failed", F.array(*map(F.lit, names)).cast("array<string>")) if names else F.lit(False)
