"""Small tables that a stream is joined with. Spark would read them again, and send them round, with every batch; here
they are read when the query is made, which is also when Spark fixes which files it reads."""

from __future__ import annotations

from pyspark.sql import DataFrame


def constant(table: DataFrame, beside: DataFrame) -> DataFrame:
    """The table; beside a stream, as values that are part of the query."""
    return at_hand(table) if beside.isStreaming else table


def at_hand(rows: DataFrame) -> DataFrame:
    """The same rows, computed now and held by the driver: whatever is done with them starts from there."""
    # From Arrow it is a relation of values, which Spark plans with; from Python objects it would be a job.
    return rows.sparkSession.createDataFrame(rows.toArrow(), schema=rows.schema)
