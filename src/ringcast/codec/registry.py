"""Which codecs there are: the table below, and whatever is installed under the entry point group `ringcast.codecs`.

A kind is imported when it is first named, so that a program which never sends an array never loads NumPy.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ringcast.codec.interface import CodecKind
from ringcast.errors import CodecError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

GROUP = "ringcast.codecs"

_BUILT_IN = {
    "audio": "ringcast.codec.audio:AUDIO",
    "bytes": "ringcast.codec.raw:BYTES",
    "image": "ringcast.codec.images:IMAGE",
    "json": "ringcast.codec.records:JSON",
    "msgpack": "ringcast.codec.records:MSGPACK",
    "numpy": "ringcast.codec.arrays:NUMPY",
    "variables": "ringcast.codec.raw:VARIABLES",
    "view": "ringcast.codec.view:VIEW",
}


def installed() -> list[str]:
    """Names that `find` knows, sorted."""
    return sorted(_BUILT_IN.keys() | _entry_points().names)


@lru_cache(maxsize=64)
def find(name: str) -> CodecKind:
    """The kind called `name`. Raises CodecError when there is none, or when its package does not import."""
    target = _BUILT_IN.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        return cast(CodecKind, getattr(import_module(module), attribute))
    # Names come from the tag table, which other programs write: an entry point is only ever looked up by name.
    for entry in _entry_points().select(name=name):
        try:
            return cast(CodecKind, entry.load())
        except Exception as exc:
            raise CodecError(name, f"its package {entry.value!r} cannot be loaded: {exc}") from exc
    raise CodecError(name, f"no codec of that name is installed here; there are {', '.join(installed())}")


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # takes a fifth of the time to import ringcast, and is seldom needed

    return entry_points(group=GROUP)
