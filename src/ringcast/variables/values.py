"""A variable's value as questions and answers carry it. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

_DTYPES = ("<f8", "<f4", "<i8", "<i4")


class Array(msgspec.Struct, frozen=True):
    dtype: str
    data: bytes


def packed(value: Any) -> Any:
    """A value as msgpack carries it."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.newbyteorder("<").str, "data": value.tobytes()}
    return value.item() if isinstance(value, np.generic) else value


def unpacked_untrusted(value: Any) -> Any:
    """Raises ValueError."""
    if not isinstance(value, dict):
        return value
    try:
        array = msgspec.convert(value, Array)
    except msgspec.ValidationError as exc:
        raise ValueError(f"no value of a variable: {exc}") from exc
    if array.dtype not in _DTYPES or len(array.data) % np.dtype(array.dtype).itemsize:
        raise ValueError(f"an array of {array.dtype!r} with {len(array.data)} bytes is no value of a variable")
    return np.frombuffer(array.data, dtype=array.dtype)
