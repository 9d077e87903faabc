"""The codec `variables`: chunks of named values. The core reads and writes them (native/variables/chunk.hpp has the
bytes); no Python runs per variable. `session.variables(tag)` is how they are used."""

from __future__ import annotations

from typing import Any

from ringcast.errors import CodecError


class VariablesCodec:
    """Both directions are None: chunks pass as they are."""

    name = "variables"
    encode = None
    decode = None


class VariablesKind:
    name = "variables"

    def describe(self, schema: object) -> dict[str, Any]:
        raise CodecError(self.name, f"takes no schema, but was given {schema!r}; variables have types of their own")

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> VariablesCodec:
        if description is not None:
            raise CodecError(self.name, "takes no schema, but the tag has one")
        return VariablesCodec()


VARIABLES = VariablesKind()
