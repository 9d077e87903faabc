"""Values as columns: the schema of a tag as an Arrow type, and payloads decoded into it.

A description (see `codec.schema`) becomes structs, lists and maps; what has no counterpart is left out of the column
and stays in the payload. Every field is nullable. A payload that does not decode, or does not fit, is null: it is the
reader who decides what that means, and the payload is beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

_PLAIN = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "json": msgspec.json.Decoder().decode,
    "msgpack": msgspec.msgpack.Decoder().decode,
}
_MAX_NESTING = 32


def can_decode(codec: str) -> bool:
    return codec in _DECODERS


def arrow_type(description: Any, depth: int = 0, definitions: dict[str, Any] | None = None) -> pa.DataType | None:
    """None where there is no counterpart."""
    if not isinstance(description, dict) or depth > _MAX_NESTING:
        return None
    defs = description.get("$defs", {}) if definitions is None else definitions

    def inner(node: Any) -> pa.DataType | None:
        return arrow_type(node, depth + 1, defs)

    if isinstance(ref := description.get("$ref"), str):
        return inner(defs.get(ref.removeprefix("#/$defs/")))
    for word in ("anyOf", "oneOf"):
        if isinstance(options := description.get(word), list):
            return _only([inner(node) for node in options if node != {"type": "null"}])
    if isinstance(values := description.get("enum"), list):
        return pa.string() if all(isinstance(value, str) for value in values) else None
    kind = description.get("type")
    if isinstance(kind, list):
        return _only([inner({**description, "type": one}) for one in kind if one != "null"])
    if kind == "array":
        items = inner(description.get("items"))
        return None if items is None else pa.list_(items)
    if kind == "object" and isinstance(properties := description.get("properties"), dict):
        fields = [(name, inner(node)) for name, node in properties.items()]
        found = [pa.field(name, of) for name, of in fields if of is not None]
        return pa.struct(found) if found else None
    if kind == "object":
        of = inner(description.get("additionalProperties"))
        return None if of is None else pa.map_(pa.string(), of)
    if kind in _PLAIN and "contentEncoding" not in description:
        return _PLAIN[kind]
    return None


def _only(found: list[pa.DataType | None]) -> pa.DataType | None:
    return found[0] if len(found) == 1 else None


def decoded(payloads: pa.Array, codecs: pa.Array, kind: pa.DataType) -> pa.Array:
    """One value per payload, or null."""
    values: list[Any] = []
    record = pa.types.is_struct(kind)
    names = codecs.unique().to_pylist()
    decoders = [_DECODERS.get(names[0])] * len(payloads) if len(names) == 1 else map(_DECODERS.get, codecs.to_pylist())
    for payload, decode in zip(payloads.to_pylist(), decoders, strict=True):
        try:
            value = None if decode is None else decode(payload)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            value = None
        # Arrow would take a list of pairs for a struct, and an empty list for one of nulls.
        values.append(None if record and not isinstance(value, dict) else value)
    try:
        return pa.array(values, kind, from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.concat_arrays([_one(value, kind) for value in values]) if values else pa.array([], kind)


def _one(value: Any, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(1, kind)


def describe(kind: pa.DataType) -> dict[str, Any]:
    """The schema of a tag whose values have this type: the way back. Raises TypeError for what has no counterpart."""
    types = pa.types
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        properties = {field.name: _or_null(describe(field.type)) for field in fields}
        return {"type": "object", "properties": properties, "required": sorted(properties)}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "array", "items": _or_null(describe(kind.value_type))}
    if types.is_map(kind):
        return {"type": "object", "additionalProperties": _or_null(describe(kind.item_type))}
    if types.is_boolean(kind):
        return {"type": "boolean"}
    if types.is_integer(kind):
        return {"type": "integer"}
    if types.is_floating(kind):
        return {"type": "number"}
    # Times and decimals travel as text, which says all of them.
    if types.is_string(kind) or types.is_large_string(kind) or types.is_temporal(kind) or types.is_decimal(kind):
        return {"type": "string"}
    if types.is_binary(kind):
        return {"type": "string", "contentEncoding": "base64"}
    raise TypeError(f"a column of type {kind} cannot be published; cast it first")


def _or_null(description: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [description, {"type": "null"}]}
