"""`ingest`: what a source or a recording gives, as rows of `bronze.messages`. Nothing is dropped or corrected."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ringcast.spark.tables.bronze import MESSAGES

_UNSAID = {"every": "1", "lost": "0", "discardable": "false", "codec": "'bytes'", "schema_id": "null"}
"""What a source that does not know a column means by leaving it out."""


def ingest(messages: DataFrame) -> DataFrame:
    """The declared columns in the declared order; others, such as a decoded value, are left behind."""
    return messages.select(*(_column(messages, field.name, field.dataType.simpleString()) for field in MESSAGES.schema))


def _column(messages: DataFrame, name: str, kind: str) -> Column:
    known = F.col(name) if name in messages.columns else F.expr(_UNSAID.get(name, name))
    return known.cast(kind).alias(name)
