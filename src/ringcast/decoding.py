"""Which codec reads the messages of a ring: the one its tag was opened with, or the one its tag's attributes name.

A wildcard meets tags nobody here opened. One whose codec is not installed here is not silently passed by: each of
its messages raises DecodeError in `recv`, which then goes on with the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ringcast.codec import Codec, find
from ringcast.errors import CodecError, DecodeError
from ringcast.tag import TagAttributes

Decode = Callable[[Any], Any]


def bind(attributes: TagAttributes, schema: object = None) -> Codec:
    """The codec of a tag with these attributes. `schema` is what this program gave. Raises CodecError."""
    return find(attributes.codec).bind(attributes.schema, schema)


class Decoders:
    """Decoders by tag, for one subscription. `own` is the opened tag's, if the subscription has one."""

    def __init__(self, own: tuple[str, TagAttributes, Codec] | None = None) -> None:
        self._known: dict[str, tuple[TagAttributes, Decode | None]] = {}
        if own is not None:
            name, attributes, codec = own
            self._known[name] = (attributes, codec.decode)

    def of(self, tag: str, attributes: TagAttributes) -> Decode | None:
        known = self._known.get(tag)
        if known is not None and (known[0].codec, known[0].schema) == (attributes.codec, attributes.schema):
            return known[1]
        try:
            decode = bind(attributes).decode
        except CodecError as exc:
            decode = _refusing(exc)
        self._known[tag] = (attributes, decode)
        return decode


class Undecoded(Decoders):
    """For a reader that never looks at what a message says."""

    def of(self, tag: str, attributes: TagAttributes) -> None:
        return None


def _refusing(error: CodecError) -> Decode:
    def decode(_: Any) -> NoReturn:
        raise DecodeError(error.codec, error.reason)

    return decode
