"""What a table of the lake is, and what may become of its schema.

A table's schema is declared, never inferred. It may grow by nullable columns; rows written before have null there, and
so have rows of code that is older. Anything else (another type, a column that may not be null any more) is another
table under the same name: whoever declares it says so by the next `version`, and the one before stays beside it.
Must not know files or Spark sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql.types import DataType, StringType, StructField, StructType

HOURLY = "date_format(event_time, \"yyyy-MM-dd'T'HH\")"
"""Partitions of one hour of event time, UTC. Their names sort as time does."""
WHOLE = "'all'"
"""One partition, for tables that stay small."""

_HOUR = "%Y-%m-%dT%H"


@dataclass(frozen=True)
class Table:
    """`partition` is an SQL expression over the columns whose value names a row's partition."""

    name: str
    about: str
    schema: StructType
    partition: str = WHOLE
    version: int = 1

    @property
    def folder(self) -> str:
        return self.name if self.version == 1 else f"{self.name}@{self.version}"

    @property
    def partition_column(self) -> str | None:
        """What the partition is called where it is stored; None for a table of one partition."""
        return None if self.partition == WHOLE else "hour" if self.partition == HOURLY else "part"

    @property
    def stored_schema(self) -> StructType:
        """The columns, and after them the partition's."""
        extra = [StructField(self.partition_column, StringType())] if self.partition_column else []
        return StructType([*self.schema, *extra])

    @property
    def columns(self) -> list[str]:
        return self.schema.fieldNames()


@dataclass(frozen=True)
class Fit:
    """How rows of one schema go into a table of another: `added` columns, or `breaks` that say why they cannot."""

    added: tuple[StructField, ...] = ()
    breaks: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return not self.breaks


def fit(stored: StructType, offered: StructType) -> Fit:
    """Whether a table with the schema `stored` may take the schema `offered` from now on."""
    have, want = ({field.name: field for field in schema} for schema in (stored, offered))
    breaks = [f"column {name} is missing" for name in have if name not in want]
    for name, field in have.items():
        other = want.get(name)
        if other is None:
            continue
        if not same_type(field.dataType, other.dataType):
            breaks.append(
                f"column {name} is {other.dataType.simpleString()}, the table has {field.dataType.simpleString()}"
            )
        elif other.nullable and not field.nullable:
            breaks.append(f"column {name} may be null, the table's may not")
    added = [field for name, field in want.items() if name not in have]
    breaks += [f"the new column {field.name} may not be null, but the rows there have none" for field in added
               if not field.nullable]  # fmt: skip
    return Fit(tuple(added), tuple(breaks))


def same_type(one: DataType, other: DataType) -> bool:
    """Equal but for nullability inside, which Spark's own functions widen without being asked."""
    return one.simpleString() == other.simpleString()


def hours(begin: datetime, end: datetime) -> list[str]:
    """The partitions of a table by hours that hold any instant of [begin, end)."""
    at = begin.replace(minute=0, second=0, microsecond=0)
    names = []
    while at < end:
        names.append(at.strftime(_HOUR))
        at += timedelta(hours=1)
    return names
