"""The codec `image`: pictures as NumPy arrays of uint8, grey (rows, columns) or colour (rows, columns, 1 to 4).

    byte  0      1      2        3         4 .. 7   8 .. 11   12 .. 15   payload
         +------+------+--------+---------+--------+---------+----------+---------------------------+
         | 0x8A | 0x01 | format | colours | width  | height  | 0        | rows of pixels, or a file |
         +------+------+--------+---------+--------+---------+----------+---------------------------+
          magic  version                   u32      u32

Numbers are little-endian; `colours` is 0 for a grey image without a third axis. Format 0 is raw: read without a copy. 1
is PNG, 2 is JPEG and 3 is WebP, which take Pillow (`pip install ringcast[images]`). A schema is `{"format": "raw" |
"png" | "jpeg" | "webp"}`: how publishers encode; whoever reads takes each message as it is. What the header says is
checked against the length, or against the file, before anything is made of it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from ringcast.codec.interface import Encoded
from ringcast.errors import CodecError, DecodeError, EncodeError

_HEADER = struct.Struct("<BBBBIIxxxx")
_MAGIC, _VERSION = 0x8A, 1
_FORMATS = ("raw", "png", "jpeg", "webp")
_MODES = {0: "L", 1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_MAX_PIXELS = 2**28
_JPEG_QUALITY = 90


class ImageCodec:
    name = "image"

    def __init__(self, form: str = "raw") -> None:
        self._form = form

    def encode(self, value: Any) -> Encoded:
        if not isinstance(value, np.ndarray) or value.dtype != np.uint8:
            what = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise EncodeError(self.name, f"takes arrays of uint8, not {what}")
        if value.ndim not in (2, 3) or 0 in value.shape or (value.ndim == 3 and value.shape[2] > 4):
            raise EncodeError(self.name, f"an image is (rows, columns) or (rows, columns, 1 to 4), not {value.shape}")
        colours = value.shape[2] if value.ndim == 3 else 0
        if value.shape[0] * value.shape[1] > _MAX_PIXELS:
            raise EncodeError(self.name, f"an image has at most {_MAX_PIXELS} pixels; send it in parts, or smaller")
        header = _HEADER.pack(_MAGIC, _VERSION, _FORMATS.index(self._form), colours, value.shape[1], value.shape[0])
        pixels = np.ascontiguousarray(value)
        return header, pixels.reshape(-1).data if self._form == "raw" else self._compressed(pixels, colours)

    def decode(self, data: bytes | memoryview) -> Any:
        try:
            form, colours, width, height = _parse_untrusted(memoryview(data))
            shape = (height, width, colours) if colours else (height, width)
            if form == "raw":
                array = np.ndarray(shape, np.uint8, buffer=data, offset=_HEADER.size)
            else:
                array = _expanded(memoryview(data)[_HEADER.size :], form, colours, (width, height)).reshape(shape)
        except (ValueError, TypeError, struct.error) as exc:
            raise DecodeError(self.name, str(exc)) from exc
        array.flags.writeable = False
        return array

    def _compressed(self, pixels: np.ndarray[Any, Any], colours: int) -> bytes:
        image = _pillow(EncodeError)
        if self._form == "jpeg" and colours in (2, 4):
            raise EncodeError(self.name, f"jpeg has no transparency: send 1 or 3 colours, not {colours}, or use png")
        if self._form == "webp" and colours not in (3, 4):
            raise EncodeError(self.name, f"webp is always in colour: send 3 or 4 colours, not {colours}, or use png")
        flat = pixels[:, :, 0] if colours == 1 else pixels
        file = io.BytesIO()
        # Pillow guesses the mode from the shape, which for uint8 is unambiguous.
        image.fromarray(flat).save(file, self._form, quality=_JPEG_QUALITY)
        return file.getvalue()


class ImageKind:
    name = "image"

    def describe(self, schema: object) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or schema.keys() != {"format"} or schema["format"] not in _FORMATS:
            raise CodecError(self.name, f"a schema is {{'format': one of {', '.join(_FORMATS)}}}, not {schema!r}")
        if schema["format"] != "raw":
            _pillow(CodecError)
        return {"format": schema["format"]}

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> ImageCodec:
        try:
            known = msgspec.convert(description or {}, _Schema)
        except msgspec.ValidationError as exc:
            raise CodecError(self.name, f"the tag's schema is not one of images: {exc}") from exc
        if known.format not in _FORMATS:
            raise CodecError(self.name, f"format {known.format!r} is not known here; there are {', '.join(_FORMATS)}")
        return ImageCodec(known.format)


class _Schema(msgspec.Struct, forbid_unknown_fields=True):
    format: str = "raw"


IMAGE = ImageKind()


def format_untrusted(data: memoryview) -> str:
    """How the image in a message is encoded. Raises DecodeError."""
    try:
        return _parse_untrusted(data)[0]
    except (ValueError, struct.error) as exc:
        raise DecodeError("image", str(exc)) from exc


def _parse_untrusted(data: memoryview) -> tuple[str, int, int, int]:
    magic, version, form, colours, width, height = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError("these bytes were not sent by the image codec")
    if form >= len(_FORMATS) or colours not in _MODES or not 0 < width * height <= _MAX_PIXELS:
        raise ValueError("the header describes an image that cannot be")
    if form == 0 and width * height * max(1, colours) != len(data) - _HEADER.size:
        raise ValueError(f"the header says {width} by {height} of {colours} colours, but other bytes follow it")
    return _FORMATS[form], colours, width, height


def _expanded(data: memoryview, form: str, colours: int, size: tuple[int, int]) -> np.ndarray[Any, Any]:
    image = _pillow(DecodeError)
    # Only the format that the header names is tried, and no pixel is made before size and colours are known to agree.
    try:
        with image.open(io.BytesIO(data), formats=[form]) as opened:
            if opened.size != size or opened.mode != _MODES[colours]:
                raise ValueError(f"the header says {size} of {colours} colours, the file {opened.size}, {opened.mode}")
            return np.array(opened, np.uint8)
    except Exception as exc:  # decoders of damaged files raise whatever they stumble over
        raise ValueError(f"not a {form} file: {exc}") from exc


def _pillow(error: type[CodecError]) -> Any:
    try:
        from PIL import Image
    except ImportError as exc:
        raise error("image", "png, jpeg and webp need Pillow: pip install 'ringcast[images]'") from exc
    return Image
