"""Images and arrays at another size, by area averaging: codecs `image` and `numpy`.

Of an array the first two axes are rows and columns; what comes after them, colours say, is kept. `size` is
(width, height), so (columns, rows). Encoded images (PNG, JPEG) are encoded again in their own format.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ringcast.codec import find
from ringcast.errors import CodecError, ScaleError
from ringcast.model.tag import TagAttributes
from ringcast.scaling.averaging import averaged
from ringcast.scaling.interface import Size

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MAX_CELLS = 2**28
"""Of a result; beyond, a size is a mistake or an attack."""


class Spatial:
    name = "spatial"
    codecs = frozenset({"image", "numpy"})

    def scale(self, payload: Buffer, attributes: TagAttributes, size: Size) -> bytes:
        width, height = size
        try:
            array = _decoder(attributes.codec)(memoryview(payload))
            if array.shape[:2] == (height, width) and array.size:
                return bytes(payload)  # as it came: nothing is encoded, or rounded, twice
            beside = int(np.prod(array.shape[2:], dtype=np.int64))
            if width * height * beside > _MAX_CELLS:
                raise ScaleError(attributes.codec, f"{width} by {height} cells of {beside} are more than can be made")
            small = averaged(array, height, width)
            return _joined(_encoder(attributes.codec, _format(memoryview(payload), attributes)).encode(small))
        except (CodecError, TypeError, ValueError) as exc:
            raise ScaleError.of(attributes.codec, exc) from exc

    def schema(self, schema: dict[str, Any] | None, size: Size) -> dict[str, Any] | None:
        shape = (schema or {}).get("shape")
        if schema is None or shape is None:
            return schema
        if not isinstance(shape, list | tuple) or len(shape) < 2:
            raise ScaleError("numpy", f"arrays of shape {shape} have no width and height")
        return {**schema, "shape": [size[1], size[0], *shape[2:]]}


def _format(payload: memoryview, attributes: TagAttributes) -> str | None:
    if attributes.codec != "image":
        return None
    from ringcast.codec.images import format_untrusted

    return format_untrusted(payload)


@lru_cache(maxsize=16)
def _decoder(codec: str) -> Any:
    return find(codec).bind(None).decode


@lru_cache(maxsize=16)
def _encoder(codec: str, form: str | None) -> Any:
    return find(codec).bind({"format": form} if form is not None else None)


def _joined(parts: Any) -> bytes:
    return b"".join(parts) if isinstance(parts, tuple) else bytes(parts)
