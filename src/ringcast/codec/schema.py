"""Schemas as plain values: a type becomes a description, and a description becomes something that checks values.

A description is a JSON schema without what does not change the shape (titles, texts, defaults, the names of
classes, the order of fields), so that two programs which wrote the same record down independently agree.
Descriptions come from the tag table and are untrusted: every walk is bounded, and what is not understood is not
checked rather than refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import msgspec

from ringcast.codec.prepared import made

Description = dict[str, Any]

_MAX_NESTING = 32
_SILENT = frozenset({"title", "description", "default", "examples", "$comment", "$schema", "$id"})
_CONSTRAINTS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
    "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length", "maxItems": "max_length",
}  # fmt: skip
_ALLOWED = {
    # Not `pattern`: a regular expression written by somebody else can be made to take for ever.
    "string": frozenset({"minLength", "maxLength"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"minItems", "maxItems"}),
}
_PLAIN: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}


def describe(schema: object) -> Description:
    """The description of a type (msgspec.Struct, dataclass, TypedDict, `list[float]`...), or of a JSON schema.

    Raises TypeError when neither can be made of it.
    """
    if isinstance(schema, Mapping):
        given = msgspec.to_builtins(dict(schema), str_keys=True)
    else:
        try:
            given = msgspec.json.schema(schema)
        except (TypeError, RuntimeError, NameError) as exc:
            raise TypeError(f"{schema!r} is not a schema: {exc}") from exc
    return _Canonical(given).result()


def checking_type(description: Description) -> Any:
    """A type that `msgspec.convert` can hold decoded plain values against; `Any` where nothing can be said."""
    try:
        kind = _type(description, description.get("$defs", {}), (), 0)
        made(kind, msgspec.json)  # some types can be written down that msgspec cannot check
        return kind
    except (TypeError, ValueError, AttributeError, RecursionError):
        return Any


class _Canonical:
    """Renames definitions in the order in which a sorted walk meets them, and drops what does not change the shape."""

    def __init__(self, schema: Description) -> None:
        self._schema = schema
        found = schema.get("$defs", {})
        self._definitions = found if isinstance(found, dict) else {}
        self._names: dict[str, str] = {}
        self._bodies: Description = {}

    def result(self) -> Description:
        root: Description = self._walk({k: v for k, v in self._schema.items() if k != "$defs"}, 0)
        if self._bodies:
            root["$defs"] = self._bodies
        return root

    def _walk(self, node: Any, depth: int) -> Any:
        if depth > _MAX_NESTING:
            raise TypeError(f"the schema is nested deeper than {_MAX_NESTING}")
        if isinstance(node, list):
            return [self._walk(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        out: Description = {}
        for key in sorted(node):
            value = node[key]
            if key in _SILENT:
                continue
            if key == "$ref" and isinstance(value, str):
                out[key] = self._reference(value, depth)
            elif key == "properties" and isinstance(value, dict):
                # Its keys are the application's own: a field may well be called `title`.
                out[key] = {name: self._walk(value[name], depth + 1) for name in sorted(value)}
            elif key in ("required", "enum") and isinstance(value, list):
                out[key] = sorted(value, key=repr)
            else:
                out[key] = self._walk(value, depth + 1)
        return out

    def _reference(self, ref: str, depth: int) -> str:
        old = ref.removeprefix("#/$defs/")
        if old not in self._definitions:
            return ref
        if old not in self._names:
            new = self._names[old] = f"d{len(self._names)}"
            self._bodies[new] = None
            self._bodies[new] = self._walk(self._definitions[old], depth + 1)
        return f"#/$defs/{self._names[old]}"


def _type(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...], depth: int) -> Any:
    if not isinstance(node, dict) or depth > _MAX_NESTING:
        return Any
    if isinstance(ref := node.get("$ref"), str):
        name = ref.removeprefix("#/$defs/")
        if name in inside:  # a record that contains itself is checked down to its first repetition
            return Any
        return _type(definitions.get(name), definitions, (*inside, name), depth + 1)
    for word in ("anyOf", "oneOf"):
        if isinstance(options := node.get(word), list) and options:
            return _union([_type(option, definitions, inside, depth + 1) for option in options])
    if isinstance(values := node.get("enum", [node["const"]] if "const" in node else None), list):
        # bool is an int to Python, and not a literal to msgspec.
        return Literal[tuple(values)] if all(type(v) in (str, int, type(None)) for v in values) else Any
    kind = node.get("type")
    if isinstance(kind, list):
        return _union([_type({**node, "type": one}, definitions, inside, depth + 1) for one in kind])
    if kind == "array":
        return _constrained(_array(node, definitions, inside, depth), node, kind)
    if kind == "object":
        return _object(node, definitions, inside, depth)
    if not isinstance(kind, str) or kind not in _PLAIN or "format" in node or "contentEncoding" in node:
        return Any  # dates, decimals and binary have other types in MessagePack than in JSON
    return _constrained(_PLAIN[kind], node, kind)


def _array(node: Description, definitions: Mapping[str, Any], inside: tuple[str, ...], depth: int) -> Any:
    first = node.get("prefixItems")
    if isinstance(first, list):
        fixed = node.get("items") is False and node.get("minItems") == len(first)
        if not fixed:
            return list[Any]
        return tuple[tuple(_type(item, definitions, inside, depth + 1) for item in first)]  # type: ignore[misc]
    return list[_type(node.get("items"), definitions, inside, depth + 1)]  # type: ignore[misc]


def _object(node: Description, definitions: Mapping[str, Any], inside: tuple[str, ...], depth: int) -> Any:
    properties = node.get("properties")
    if not isinstance(properties, dict):
        return dict[Any, _type(node.get("additionalProperties"), definitions, inside, depth + 1)]  # type: ignore[misc]
    required = node.get("required", [])
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for i, (name, inner) in enumerate(properties.items()):
        kind = _type(inner, definitions, inside, depth + 1)
        fields.append((f"f{i}", kind) if name in required else (f"f{i}", kind, None))
    return msgspec.defstruct(
        "Record", fields, kw_only=True, rename={f"f{i}": name for i, name in enumerate(properties)}
    )  # fmt: skip


def _union(options: list[Any]) -> Any:
    kind: Any = Union[tuple(options)]  # noqa: UP007 - the number of options is only known here
    try:
        made(kind, msgspec.json)
    except TypeError:  # two records, say: msgspec tells only tagged ones apart
        return Any
    return kind


def _constrained(kind: Any, node: Description, word: str) -> Any:
    limits = {_CONSTRAINTS[key]: node[key] for key in _ALLOWED.get(word, ()) if key in node}
    if not limits or (word == "array" and getattr(kind, "__origin__", None) is tuple):
        return kind
    return Annotated[kind, msgspec.Meta(**limits)]
