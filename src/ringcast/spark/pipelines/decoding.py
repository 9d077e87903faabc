"""Payloads as columns. Runs in Spark's Python workers, on Arrow arrays; must not know tables or sessions.

A payload that does not decode never stops a job: the row's `error` says why, and the values are null.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from ringcast.codec import find
from ringcast.errors import CodecError
from ringcast.spark.pipelines.arrow import on_arrow
from ringcast.spark.tables.silver import ARRAY, RECORDS, Family

Decoded = dict[str, Any]


def decoded(family: Family, codec: Column, payload: Column) -> Column:
    """A struct: `error`, which is null where the payload decoded, and the family's columns."""
    values = StructType([StructField("error", StringType()), *(StructField(f.name, f.dataType) for f in family.values)])
    arrow = pa.struct(list(to_arrow_schema(values)))
    read = reader(family)

    def decode(codecs: pa.Array, payloads: pa.Array) -> pa.Array:
        rows = [read(name, data) for name, data in zip(codecs.to_pylist(), payloads.to_pylist(), strict=True)]
        return pa.array(rows, type=arrow)

    return on_arrow(decode, values)(codec, payload)


def reader(family: Family) -> Callable[[str, bytes], Decoded]:
    """What turns (codec, payload) into the family's values, or into `{"error": ...}`."""
    if family.values.fieldNames() == ARRAY.fieldNames():
        take = _array
    elif family is RECORDS:
        take = _text
    else:
        take = _Record(family.values)

    def read(codec: str, payload: bytes) -> Decoded:
        try:
            decode = _decoder(codec)
            if decode is None:
                return {"error": f"codec {codec!r} gives no values, only bytes"}
            return take(decode(payload))
        except (CodecError, ValueError) as exc:
            return {"error": str(exc)}

    return read


class _Record:
    """Takes the declared columns out of a record."""

    def __init__(self, schema: StructType) -> None:
        self._fields = [(field.name, field.nullable, _CHECKS[type(field.dataType)]) for field in schema]

    def __call__(self, value: Any) -> Decoded:
        if not isinstance(value, dict):
            raise ValueError(f"the value is {type(value).__name__}, not a record")
        out: Decoded = {}
        for name, nullable, check in self._fields:
            found = value.get(name)
            if found is None:
                if not nullable:
                    raise ValueError(f"the record has no {name}")
                out[name] = None
            else:
                out[name] = check(name, found)
        return out


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}, not a number")
    return float(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} is {value!r}, not a whole number of 64 bits")
    return value


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, not text")
    return value


_CHECKS: dict[type, Callable[[str, Any], Any]] = {DoubleType: _number, LongType: _whole, StringType: _string}


def _array(value: Any) -> Decoded:
    if not isinstance(value, np.ndarray):
        raise ValueError(f"the value is {type(value).__name__}, not an array")
    plain = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {"shape": list(value.shape), "dtype": plain.dtype.name, "data": plain.tobytes()}


def _text(value: Any) -> Decoded:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    try:
        return {"value": msgspec.json.encode(value).decode()}
    except (TypeError, msgspec.MsgspecError) as exc:
        raise ValueError(f"no JSON can say this value: {exc}") from exc


@lru_cache(maxsize=32)
def _decoder(codec: str) -> Callable[[bytes], Any] | None:
    return find(codec).bind(None).decode
