"""`silver.<family>`: decoded messages of tags that mean the same, once each, their times in one base.

A family says which tags belong to it and which columns a message of it has; a pipeline that reads tags declares it. The
decoder finds the columns by name in a record (JSON, MessagePack), or takes an array apart into
`shape`, `dtype` and `data`; what a record has beyond them is left in bronze. A value that lacks a column which may not
be null goes to quarantine.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from ringcast.spark.tables.bronze import ORIGIN
from ringcast.spark.tables.columns import BYTES, INTS, LONG, STRING, columns, join, optional
from ringcast.spark.tables.table import HOURLY, Table

CLOCK = columns(clock_offset_ns=LONG)
"""What was subtracted from the publisher's times to bring them into the base."""

ARRAY = columns(shape=INTS, dtype=STRING, data=BYTES)
"""How an array lies in a table: little-endian, C order."""


@dataclass(frozen=True)
class Family:
    """Tags that match `pattern`, and the columns of their values."""

    name: str
    pattern: str
    values: StructType
    about: str

    @property
    def table(self) -> Table:
        return Table(f"silver.{self.name}", self.about, join(ORIGIN, CLOCK, self.values), HOURLY)


RECORDS = Family("records", "**", optional(value=STRING), "any record, as JSON text")
"""For tags that no family claims. Not refined unless asked for by name."""
