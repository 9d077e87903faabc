"""Values between a command line and a tag: text to value by the tag's codec, value to text or JSON. Pure.

Received values come from other programs: what is shown on a terminal never holds a control character, and never more
than it was asked to hold.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ringcast.cli.parts.units import show_bytes
from ringcast.cli.program import Misuse

SHOWN_CHARACTERS = 200
_SHOWN_BYTES = 24
_SHOWN_ELEMENTS = 8

_JSON_CODECS = ("json", "msgpack")


def parse(text: str, codec: str) -> Any:
    """What `text` stands for on a tag with this codec: itself for bytes, JSON for records and arrays. Raises Misuse."""
    if codec in _JSON_CODECS:
        return _parse_json(text, codec)
    if codec in ("numpy", "image"):
        import numpy as np

        try:
            array = np.asarray(_parse_json(text, codec), np.uint8 if codec == "image" else None)
        except (ValueError, TypeError, OverflowError) as exc:
            raise Misuse(f"{_short(text)} is not an array: {exc}") from exc
        if array.dtype.kind not in "biuf":
            raise Misuse(f"{_short(text)} is not an array of numbers; write it as '[[1, 2], [3, 4]]'")
        return array
    return text.encode(errors="surrogateescape")  # an argument that is not UTF-8 is sent as the bytes it was


def counted(number: int, codec: str) -> Any:
    """The value that a counter sends."""
    return parse(str(number), codec)


def _parse_json(text: str, codec: str) -> Any:
    try:
        return msgspec.json.decode(text.encode(errors="surrogateescape"))
    except msgspec.DecodeError as exc:
        raise Misuse(
            f"{_short(text)} is not JSON, which a tag with codec {codec!r} takes ({exc}); a string needs its own "
            """quotes: '"hello"'"""
        ) from exc


def show(value: Any, limit: int = SHOWN_CHARACTERS) -> str:
    """One line for a person."""
    if isinstance(value, bytes | bytearray | memoryview):
        return _clipped(_show_bytes(bytes(value)), limit)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _clipped(_show_array(value), limit)
    if hasattr(value, "samples") and hasattr(value, "rate_hz"):
        return _clipped(f"{value.rate_hz} Hz {_show_array(value.samples)}", limit)
    try:
        return _clipped(msgspec.json.encode(value).decode(), limit)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return _clipped(ascii(value), limit)


def as_json(value: Any) -> dict[str, Any]:
    """`value` and its `encoding`: "json" (as it is), "utf-8", "base64", or "numpy" (dtype, shape, nested lists)."""
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        try:
            return {"encoding": "utf-8", "value": data.decode()}
        except UnicodeDecodeError:
            return {"encoding": "base64", "value": base64.b64encode(data).decode()}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return {"encoding": "numpy", "dtype": str(value.dtype), "shape": list(value.shape), "value": _elements(value)}
    if hasattr(value, "samples") and hasattr(value, "rate_hz"):
        return {**as_json(value.samples), "rate_hz": value.rate_hz}
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return {"encoding": "repr", "value": repr(value)}
    return {"encoding": "json", "value": value}


def encoded(value: Any, codec: str) -> bytes:
    """The message's bytes again, by the tag's codec. Raises RingcastError."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    from ringcast.codec import find

    encode = find(codec).bind(None).encode
    if encode is None:
        return bytes(value)
    parts = encode(value)
    return b"".join(bytes(part) for part in parts) if isinstance(parts, tuple) else bytes(parts)


def _show_bytes(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and all(character.isprintable() or character in "\t\n\r" for character in text):
        # A message is one line; a backslash of its own is doubled so that the two cannot be confused.
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    if not data:
        return "(empty)"
    more = " ..." if len(data) > _SHOWN_BYTES else ""
    return f"0x{data[:_SHOWN_BYTES].hex(' ', -4)}{more} ({show_bytes(len(data))})"


def _show_array(array: Any) -> str:
    shape = "x".join(str(extent) for extent in array.shape) or "scalar"
    head = f"{array.dtype} {shape} ({show_bytes(array.nbytes)})"
    if array.size == 0 or array.dtype.kind not in "biuf":
        return head
    flat = array.reshape(-1)
    if array.size <= _SHOWN_ELEMENTS:
        return f"{head} [{', '.join(f'{element:g}' for element in flat.tolist())}]"
    return f"{head} min {flat.min():g}, mean {flat.mean():g}, max {flat.max():g}"


def _elements(array: Any) -> Any:
    if array.dtype.kind in "biuf":
        return array.tolist()  # msgspec writes NaN and infinity as null, for JSON has neither
    return array.astype(str).tolist()


def _clipped(text: str, limit: int) -> str:
    safe = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:limit])
    return safe if len(text) <= limit else f"{safe}... ({len(text)} characters)"


def _short(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:40] + "...")
