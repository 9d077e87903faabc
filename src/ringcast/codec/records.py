"""The codecs `json` and `msgpack`: plain values and records, by msgspec.

A schema is a type (msgspec.Struct, dataclass, TypedDict, `dict[str, float]`) or a JSON schema. Where this program
gave the type, values are decoded into it; where it only joined the tag, plain values come out, held against the
tag's description as far as that can be done. With a schema, `send` checks what it encoded the way a receiver will.
JSON knows no NaN: it arrives as null, which a schema that says `float` refuses at `send`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import msgspec

from ringcast.codec import schema as schemas
from ringcast.codec.prepared import made
from ringcast.errors import CodecError, DecodeError, EncodeError

# Whatever msgspec raises for a value: unsupported types, integers out of range, lone surrogates, unset fields, loops.
_CANNOT_ENCODE = (TypeError, ValueError, OverflowError, RecursionError, AttributeError, msgspec.MsgspecError)
_CANNOT_DECODE = (TypeError, ValueError, OverflowError, RecursionError, MemoryError, msgspec.MsgspecError)


class RecordCodec:
    """Values by `format` (msgspec.json or msgspec.msgpack), checked against one type."""

    def __init__(self, name: str, format: ModuleType, kind: Any, *, into: bool) -> None:
        self.name = name
        self._encode = format.Encoder().encode
        self._checked = kind is not Any
        self._check = kind
        self._plain = format.Decoder().decode
        self._typed = made(kind, format).decode if into else None

    def encode(self, value: Any) -> bytes:
        try:
            data: bytes = self._encode(value)
        except _CANNOT_ENCODE as exc:
            raise EncodeError(self.name, f"cannot encode {type(value).__name__}: {exc}") from exc
        if self._checked:
            try:
                self._decode(data)
            except _CANNOT_DECODE as exc:
                raise EncodeError(self.name, f"the value does not fit the tag's schema: {exc}") from exc
        return data

    def decode(self, data: bytes | memoryview) -> Any:
        try:
            return self._decode(data)
        except _CANNOT_DECODE as exc:
            raise DecodeError(self.name, str(exc)) from exc

    def _decode(self, data: bytes | memoryview) -> Any:
        if self._typed is not None:
            return self._typed(data)
        value = self._plain(data)
        if self._checked:
            # The converted record is thrown away: it would lack the fields that the description does not name.
            msgspec.convert(value, self._check)
        return value


class RecordKind:
    def __init__(self, name: str, format: ModuleType) -> None:
        self.name = name
        self._format = format

    def describe(self, schema: object) -> dict[str, Any]:
        try:
            return schemas.describe(schema)
        except TypeError as exc:
            raise CodecError(self.name, str(exc)) from exc

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> RecordCodec:
        if schema is not None and not isinstance(schema, Mapping):
            try:
                return RecordCodec(self.name, self._format, schema, into=True)
            except TypeError as exc:
                raise CodecError(self.name, f"cannot decode into {schema!r}: {exc}") from exc
        kind = Any if description is None else schemas.checking_type(description)
        return RecordCodec(self.name, self._format, kind, into=False)


JSON = RecordKind("json", msgspec.json)
MSGPACK = RecordKind("msgpack", msgspec.msgpack)
