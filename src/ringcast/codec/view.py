"""The codec `view`: what a proxy makes of a tag is read as the tag itself, whose codec and schema it names."""

from __future__ import annotations

from typing import Any

from ringcast.codec.interface import Codec
from ringcast.codec.registry import find
from ringcast.errors import CodecError


class ViewKind:
    name = "view"

    def describe(self, schema: object) -> dict[str, Any]:
        if not isinstance(schema, dict) or schema.keys() != {"view", "codec", "schema"}:
            raise CodecError(self.name, "is for what proxies make of tags; subscribe with a policy instead")
        self.bind(schema)
        return schema

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> Codec:
        codec = (description or {}).get("codec")
        if not isinstance(codec, str) or codec == self.name:
            raise CodecError(self.name, "the tag does not say of which codec its messages are")
        return find(codec).bind((description or {}).get("schema"))


VIEW = ViewKind()
