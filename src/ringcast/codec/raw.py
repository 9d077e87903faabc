"""The codec `bytes`: what you send is what arrives. The core does all of it; no Python runs per message."""

from __future__ import annotations

from typing import Any

from ringcast.errors import CodecError


class RawCodec:
    """Both directions are None, which tells the core to pass bytes through."""

    name = "bytes"
    encode = None
    decode = None


class RawKind:
    name = "bytes"

    def describe(self, schema: object) -> dict[str, Any]:
        raise CodecError(self.name, f"takes no schema, but was given {schema!r}; use json, msgpack or numpy")

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> RawCodec:
        if description is not None:
            raise CodecError(self.name, "takes no schema, but the tag has one")
        return RawCodec()


BYTES = RawKind()
