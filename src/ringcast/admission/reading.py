"""A system from a file: TOML or JSON with the same names. Pure: text in, `System` out.

Every complaint is one sentence with the field and, in TOML, the line. A name that is not known is a typo, not an
extension.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from ringcast.admission.checks import check
from ringcast.admission.model import AdmissionError, System
from ringcast.model.toml_lines import line_of, line_of_error, lines_of

T = TypeVar("T")
_AT = re.compile(r"^(?P<words>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")


def read(text: str, *, toml: bool) -> System:
    """Raises AdmissionError."""
    document = _toml(text) if toml else _json(text)
    try:
        return check(decoded(document, System))
    except AdmissionError as exc:
        if not toml or not exc.field:
            raise
        line = line_of(lines_of(text), path_of(exc.field))
        raise AdmissionError(f"line {line}, {exc.field}", exc.reason) from exc


def decoded(document: Any, kind: type[T]) -> T:
    """What a file says, unchecked but for its types and ranges. Raises AdmissionError."""
    try:
        # TOML and JSON write 1 for 1.0, and lists for tuples.
        return msgspec.convert(document, kind, strict=True)
    except msgspec.ValidationError as exc:
        found = _AT.match(str(exc))
        assert found is not None
        field = (found["path"] or "").removeprefix(".")
        raise AdmissionError(*_said(field, found["words"], kind)) from exc


def path_of(field: str) -> tuple[str | int, ...]:
    """`streams[2].period_s` as its steps."""
    return tuple(int(number) if number else name for name, number in _STEP.findall("." + field))


def _said(field: str, words: str, kind: type) -> tuple[str, str]:
    unknown = _UNKNOWN.match(words)
    if unknown is None:
        return field, f"{words[:1].lower()}{words[1:]}"
    name = unknown[1]
    known = _fields(kind, path_of(field) if field else ())
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    return (f"{field}.{name}" if field else name), f"there is no such field; {hint}"


def _fields(kind: Any, path: tuple[str | int, ...]) -> tuple[str, ...]:
    """Of the table that the path leads to."""
    for step in path:
        kind = _struct(kind)
        if isinstance(step, str):
            types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
            kind = types[step]
    return tuple(field.encode_name for field in msgspec.structs.fields(_struct(kind)))


def _struct(kind: Any) -> Any:
    """The class inside `tuple[X, ...]` and `X | None`."""
    while get_origin(kind) is not None:
        kind = next(inner for inner in get_args(kind) if inner not in (type(None), ...))
    return kind


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line, words = line_of_error(exc, text)
        raise AdmissionError(f"line {line}", f"this is not TOML: {words[:1].lower()}{words[1:]}") from exc


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise AdmissionError(f"line {exc.lineno}", f"this is not JSON: {exc.msg}, column {exc.colno}") from exc
