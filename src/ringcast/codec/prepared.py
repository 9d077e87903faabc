"""Decoders of types that several threads may need at the same time.

msgspec prepares a type when it is first decoded into. Two threads that prepare the same one, or one that is part of
both, crash the process (seen with msgspec 0.22). So types are prepared by one thread at a time, here; a decoder that
exists may be used by any number of threads.
"""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_one_at_a_time = threading.RLock()
_kept: dict[Any, Any] = {}


def made(kind: Any, format: ModuleType = msgspec.msgpack) -> Any:
    """A decoder by `format` (msgspec.json or msgspec.msgpack). Raises TypeError when msgspec cannot decode the type."""
    with _one_at_a_time:
        return format.Decoder(kind)


def decoder_of(kind: type[_T]) -> msgspec.msgpack.Decoder[_T]:
    """The same, kept: for types that are there as long as the program."""
    found: msgspec.msgpack.Decoder[_T] | None = _kept.get(kind)
    if found is None:
        found = _kept[kind] = made(kind)
    return found
