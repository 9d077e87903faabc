"""The codecs `bytes` and `variables`: what you send is what arrives. The core does it all; no Python runs per message.

Chunks of variables are read and written by the core too (native/variables/chunk.hpp has the bytes);
`session.variables(tag)` is how they are used.
"""

from __future__ import annotations

from typing import Any

from ringcast.errors import CodecError


class RawCodec:
    """Both directions are None, which tells the core to pass bytes through."""

    encode = None
    decode = None

    def __init__(self, name: str) -> None:
        self.name = name


class RawKind:
    def __init__(self, name: str, instead: str) -> None:
        self.name = name
        self._instead = instead

    def describe(self, schema: object) -> dict[str, Any]:
        raise CodecError(self.name, f"takes no schema, but was given {schema!r}; {self._instead}")

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> RawCodec:
        if description is not None:
            raise CodecError(self.name, f"takes no schema, but the tag has one; {self._instead}")
        return RawCodec(self.name)


BYTES = RawKind("bytes", "use json, msgpack or numpy")
VARIABLES = RawKind("variables", "variables have types of their own")
