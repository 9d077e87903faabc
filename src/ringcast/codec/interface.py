"""What a codec is. The whole interface; a codec of your own needs these two classes and an entry point.

A *kind* is what the registry holds (`json`); a *codec* is a kind bound to one tag's schema. Encoding raises
EncodeError and decoding DecodeError, and nothing else: what is decoded came from another process and is untrusted.
A codec must not know tags, rings or sessions, and must never execute what it decodes (no pickle).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from typing_extensions import Buffer

Encoded: TypeAlias = "Buffer | tuple[Buffer, ...]"
"""One buffer, or several that are sent as one message without being joined first."""


class Codec(Protocol):
    """A kind bound to a schema. None for `encode` or `decode` means bytes as they are; no Python is called then."""

    @property
    def name(self) -> str: ...

    @property
    def encode(self) -> Callable[[Any], Encoded] | None: ...

    @property
    def decode(self) -> Callable[[bytes | memoryview], Any] | None: ...


class CodecKind(Protocol):
    """What an entry point of the group `ringcast.codecs` gives."""

    @property
    def name(self) -> str: ...

    def describe(self, schema: object) -> dict[str, Any]:
        """What the tag's attributes say of `schema`: plain values that compare equal for equal shapes.

        Raises CodecError when this kind takes no such schema.
        """

    def bind(self, description: dict[str, Any] | None, schema: object = None) -> Codec:
        """A codec for tags described so. `schema` is what this program gave, when it gave one.

        Raises CodecError when the description makes no sense to this kind.
        """
