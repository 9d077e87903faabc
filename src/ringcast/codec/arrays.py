"""The codec `numpy`: arrays of numbers, without a copy on either side. Never pickle.

    byte  0      1      2      3      4 .. 7        8 ..                      payload
         +------+------+------+------+-------------+------------+----------+-------+--------------+
         | 0x93 | 0x01 | ndim |  0   | descr bytes | ndim x u64 | descr    | zeros | C-order data |
         +------+------+------+------+-------------+------------+----------+-------+--------------+
          magic  version              u32            shape        JSON       to 16

All numbers little-endian. `descr` is the dtype as `numpy.lib.format` writes it: a string, or a list of fields. The
decoder takes nothing from the header that the length of the message does not confirm, and the array it returns lies
over the received bytes: read-only, and with `recv(copy=False)` good for as long as `msg.valid` says.

A schema is `{"dtype": "float32", "shape": [None, 3]}`; either may be left out, None stands for any extent.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ringcast.codec.interface import Encoded
from ringcast.errors import CodecError, DecodeError, EncodeError

_FIXED = struct.Struct("<BBBBI")
_MAGIC, _VERSION = 0x93, 1
_ALIGN = 16
_MAX_DIMENSIONS = 32  # NumPy 1's limit, so that what one side sends the other can hold
_MAX_DESCR_BYTES = 4096
_MAX_NESTING = 4
_SCALAR = re.compile(
    r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[mM]8(?:\[\d{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?|[SUV]\d{1,6})"
)


class ArrayCodec:
    name = "numpy"

    def __init__(self, dtype: np.dtype[Any] | None, shape: tuple[int | None, ...] | None) -> None:
        self._dtype = dtype
        self._shape = shape
        # A stream repeats one dtype and shape; the last header is kept for as long as they do.
        self._last: tuple[np.dtype[Any], tuple[int, ...], bytes] | None = None
        self._known: tuple[int, bytes, np.dtype[Any], tuple[int, ...]] | None = None
        """Of the last message that was decoded: bytes in all, its header, and what that was found to say."""

    def encode(self, value: Any) -> Encoded:
        array = self._accept(value)
        last = self._last
        if last is not None and last[0] is array.dtype and last[1] == array.shape:
            header = last[2]
        else:
            header = _header(array)
            self._last = (array.dtype, array.shape, header)
        if array.nbytes == 0:
            return header
        # As unsigned bytes, because dates and structures do not export a buffer under their own dtype.
        return header, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data

    def decode(self, data: bytes | memoryview) -> Any:
        known = self._known
        if known is not None and len(data) == known[0] and data[: len(known[1])] == known[1]:
            array = np.ndarray(known[3], known[2], buffer=data, offset=len(known[1]))
            array.flags.writeable = False
            return array
        try:
            dtype, shape, offset = _parse_untrusted(memoryview(data))
            array = np.ndarray(shape, dtype, buffer=data, offset=offset)
        except (ValueError, TypeError, OverflowError, struct.error, msgspec.MsgspecError, RecursionError) as exc:
            raise DecodeError(self.name, str(exc)) from exc
        if (misfit := self._misfit(array)) is not None:
            raise DecodeError(self.name, misfit)
        self._known = (len(data), bytes(data[:offset]), dtype, shape)
        array.flags.writeable = False
        return array

    def _accept(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, np.ma.MaskedArray):
            raise EncodeError(self.name, "a masked array would lose its mask; send .filled(...)")
        if not isinstance(value, np.ndarray | np.generic):
            raise EncodeError(self.name, f"takes arrays, not {type(value).__name__}; use numpy.asarray(value)")
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise EncodeError(self.name, "an array of Python objects cannot be sent; give it a numeric dtype")
        if (misfit := self._misfit(array)) is not None:
            raise EncodeError(self.name, misfit)
        return array

    def _misfit(self, array: np.ndarray[Any, Any]) -> str | None:
        if self._dtype is not None and array.dtype != self._dtype:
            return f"the tag's schema says dtype {self._dtype}, not {array.dtype}"
        if self._shape is None:
            return None
        fits = len(self._shape) == array.ndim and all(
            want in (None, have) for want, have in zip(self._shape, array.shape, strict=True)
        )
        return None if fits else f"the tag's schema says shape {list(self._shape)}, not {list(array.shape)}"


class ArrayKind:
    name = "numpy"

    def describe(self, schema: object) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or not schema.keys() <= {"dtype", "shape"}:
            raise CodecError(self.name, f"a schema is {{'dtype': ..., 'shape': [...]}}, not {schema!r}")
        out: dict[str, Any] = {}
        if schema.get("dtype") is not None:
            try:
                dtype = np.dtype(schema["dtype"])
            except TypeError as exc:
                raise CodecError(self.name, str(exc)) from exc
            if dtype.hasobject:
                raise CodecError(self.name, "arrays of Python objects cannot be sent; choose a numeric dtype")
            out["dtype"] = msgspec.to_builtins(np.lib.format.dtype_to_descr(dtype))
        if schema.get("shape") is not None:
            out["shape"] = [None if extent in (None, -1) else int(extent) for extent in schema["shape"]]
        return out

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> ArrayCodec:
        try:
            known = msgspec.convert(description or {}, _Schema)
            dtype = None if known.dtype is None else _dtype_untrusted(known.dtype)
        except (msgspec.ValidationError, ValueError, TypeError) as exc:
            raise CodecError(self.name, f"the tag's schema is not one of arrays: {exc}") from exc
        return ArrayCodec(dtype, known.shape)


class _Schema(msgspec.Struct, forbid_unknown_fields=True):
    dtype: Any = None
    shape: tuple[int | None, ...] | None = None


NUMPY = ArrayKind()


def _header(array: np.ndarray[Any, Any]) -> bytes:
    descr = msgspec.json.encode(np.lib.format.dtype_to_descr(array.dtype))
    try:
        _dtype_untrusted(msgspec.json.decode(descr))  # what a receiver would refuse is refused here
    except ValueError as exc:
        raise EncodeError(ArrayCodec.name, str(exc)) from exc
    if array.ndim > _MAX_DIMENSIONS or len(descr) > _MAX_DESCR_BYTES:
        raise EncodeError(ArrayCodec.name, f"more than {_MAX_DIMENSIONS} dimensions, or a dtype of too many fields")
    head = _FIXED.pack(_MAGIC, _VERSION, array.ndim, 0, len(descr))
    head += struct.pack(f"<{array.ndim}Q", *array.shape) + descr
    return head + bytes(-len(head) % _ALIGN)


def _parse_untrusted(data: memoryview) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    magic, version, ndim, _, descr_bytes = _FIXED.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError("these bytes were not sent by the numpy codec")
    if ndim > _MAX_DIMENSIONS or descr_bytes > _MAX_DESCR_BYTES:
        raise ValueError("the header describes an array that cannot be")
    end = _FIXED.size + 8 * ndim + descr_bytes
    offset = end + -end % _ALIGN
    shape = struct.unpack_from(f"<{ndim}Q", data, _FIXED.size)
    if end > len(data):
        raise ValueError("the header is cut off")
    dtype = _dtype_untrusted(msgspec.json.decode(data[end - descr_bytes : end]))
    if offset > len(data) or math.prod(shape) * dtype.itemsize != len(data) - offset:
        raise ValueError(f"the header says {shape} of {dtype}, but other bytes follow it")
    return dtype, shape, offset


def _dtype_untrusted(descr: Any) -> np.dtype[Any]:
    """Build a dtype from plain values, by a list of what is allowed: NumPy's own parser accepts far more."""
    return np.lib.format.descr_to_dtype(_fields(descr, 0))


def _fields(descr: Any, depth: int) -> Any:
    if isinstance(descr, str):
        if not _SCALAR.fullmatch(descr):
            raise ValueError(f"dtype {descr!r} cannot be sent")
        return descr
    if not isinstance(descr, list) or not descr or depth > _MAX_NESTING:
        raise ValueError("the dtype is neither a name nor a list of fields")
    fields: list[tuple[Any, ...]] = []
    for field in descr:
        if not isinstance(field, list) or len(field) not in (2, 3) or not isinstance(field[0], str):
            raise ValueError("a field of the dtype is not (name, type) or (name, type, shape)")
        inner: tuple[Any, ...] = (field[0], _fields(field[1], depth + 1))
        if len(field) == 3:
            extents = field[2]
            good = isinstance(extents, list) and all(type(n) is int and 0 < n < 1 << 31 for n in extents)
            if not good or len(extents) > _MAX_DIMENSIONS:
                raise ValueError("a field of the dtype has an impossible shape")
            inner += (tuple(extents),)
        fields.append(inner)
    return fields
