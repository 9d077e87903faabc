"""Shorthand for declaring columns, so that a table's file reads as a list of names and types."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

STRING, LONG, INT, BOOL, DOUBLE = StringType(), LongType(), IntegerType(), BooleanType(), DoubleType()
TIME, BYTES, FLOATS, DOUBLES = TimestampType(), BinaryType(), ArrayType(FloatType()), ArrayType(DoubleType())
INTS, STRINGS = ArrayType(IntegerType()), ArrayType(StringType())


def columns(**kinds: DataType) -> StructType:
    """Columns that are never null."""
    return StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])


def optional(**kinds: DataType) -> StructType:
    """Columns that may be null."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def join(*parts: StructType) -> StructType:
    return StructType([field for part in parts for field in part])
