"""Which codec reads the messages of a ring: the one its tag was opened with, or the one its tag's attributes name.

A wildcard meets tags nobody here opened. One whose codec is not installed here is not silently passed by: each of
its messages raises DecodeError in `recv`, which then goes on with the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from msgspec.structs import replace

from ringcast.codec import Codec, find
from ringcast.errors import CodecError, DecodeError
from ringcast.model.tag import TagAttributes
from ringcast.scaling import Size, scaler_for

Decode = Callable[[Any], Any]


def bind(attributes: TagAttributes, schema: object = None) -> Codec:
    """The codec of a tag with these attributes. `schema` is what this program gave. Raises CodecError."""
    return find(attributes.codec).bind(attributes.schema, schema)


def scaled(attributes: TagAttributes, size: Size) -> TagAttributes:
    """A tag's attributes as its scaled messages have them. Raises QosMismatch, ScaleError."""
    return replace(attributes, schema=scaler_for(attributes.codec, size).schema(attributes.schema, size))


def scaling(attributes: TagAttributes, size: Size) -> Decode:
    """A decoder that scales first: scaling at the subscriber. Raises QosMismatch, ScaleError, CodecError."""
    scale = only_scaling(attributes, size)
    decode = bind(scaled(attributes, size)).decode
    if decode is None:
        return scale
    return lambda payload: decode(scale(payload))


def only_scaling(attributes: TagAttributes, size: Size) -> Decode:
    """Scales, and leaves the bytes as the codec wrote them. Raises QosMismatch."""
    scale = scaler_for(attributes.codec, size).scale
    return lambda payload: scale(payload, attributes, size)


class Decoders:
    """Decoders by tag, for one subscription. `own` is the opened tag's, if the subscription has one; `size` is what
    messages are scaled to."""

    def __init__(self, own: tuple[str, TagAttributes, Codec] | None = None, size: Size | None = None) -> None:
        self._known: dict[str, tuple[TagAttributes, Decode | None]] = {}
        self._size = size
        self._sizes: dict[tuple[str, Size], Decode] = {}
        if own is not None:
            name, attributes, codec = own
            self._known[name] = (attributes, codec.decode)

    def of(self, tag: str, attributes: TagAttributes, size: Size | None = None) -> Decode | None:
        """`size` is what the messages were scaled to on their way. Raises QosMismatch, ScaleError."""
        if self._size is not None:
            try:
                return self._scaling(tag, attributes) if size is None else bind(scaled(attributes, size)).decode
            except CodecError as exc:
                if isinstance(exc, DecodeError):
                    raise
                return _refusing(exc)
        known = self._known.get(tag)
        if known is not None and (known[0].codec, known[0].schema) == (attributes.codec, attributes.schema):
            return known[1]
        try:
            decode = bind(attributes).decode
        except CodecError as exc:
            decode = _refusing(exc)
        self._known[tag] = (attributes, decode)
        return decode

    def resize(self, size: Size) -> None:
        """Scale to another size from now on, what is not scaled on its way."""
        self._size = size

    def _scaling(self, tag: str, attributes: TagAttributes) -> Decode:
        """Raises as `scaling` does, here and not with each message."""
        assert self._size is not None
        self._sizes[tag, self._size] = scaling(attributes, self._size)

        def decode(payload: Any) -> Any:
            key = (tag, self._size or (1, 1))
            if key not in self._sizes:
                self._sizes[key] = scaling(attributes, key[1])
            return self._sizes[key](payload)

        return decode


class Undecoded(Decoders):
    """For a reader that never looks at what a message says."""

    def of(self, tag: str, attributes: TagAttributes, size: Size | None = None) -> Decode | None:
        return only_scaling(attributes, self._size) if self._size is not None and size is None else None


def _refusing(error: CodecError) -> Decode:
    def decode(_: Any) -> NoReturn:
        raise DecodeError(error.codec, error.reason)

    return decode
