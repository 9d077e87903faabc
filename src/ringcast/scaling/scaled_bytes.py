"""How many bytes a message has at most that was scaled to a size, by what its tag says of the messages. Pure.

For admission, which computes before any message is there. The schema of a tag with arrays or audio says how large they
are; an image that is not compressed has at most four bytes a pixel. Where neither helps (a compressed image, an array
of any shape, a codec of somebody else) a scaled message is taken to be as long as the longest that was declared.
"""

from __future__ import annotations

import math

from ringcast.model.tag import TagAttributes
from ringcast.scaling.interface import Size

_HEADER_BYTES, _EXTENT_BYTES = 64, 8
"""Of arrays, audio and images at most, and for each axis of an array."""
_PIXEL_BYTES = 4
_SAMPLE_BYTES = 4


def scaled_bytes(attributes: TagAttributes, max_bytes: int, size: Size) -> float:
    """Of messages that have `max_bytes` before."""
    schema = attributes.schema or {}
    match attributes.codec, schema:
        case "image", {"format": form} if form != "raw":
            return float(max_bytes)
        case "image", _:
            return min(float(max_bytes), _HEADER_BYTES + math.prod(size) * float(_PIXEL_BYTES))
        case "numpy", {"shape": [int(rows), int(columns), *others]} if rows > 0 and columns > 0:
            header = _HEADER_BYTES + _EXTENT_BYTES * (2 + len(others))
            return max_bytes * math.prod(size) / (rows * columns) + header
        case "audio", {"rate_hz": int(rate), "channels": int(channels)} if rate > 0 and channels > 0:
            # A block's length is rounded, by less than one sample of each channel.
            return max_bytes * math.prod(size) / (rate * channels) + _HEADER_BYTES + _SAMPLE_BYTES * size[1]
    return float(max_bytes)
