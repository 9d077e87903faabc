"""Transports by name. Ours and everybody else's are found the same way: by entry point."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from ringcast.errors import QosMismatch
from ringcast.transport.interface import Transport

GROUP = "ringcast.transports"


@cache
def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def names() -> list[str]:
    return sorted(_entry_points())


@cache
def find(name: str) -> Transport:
    """Raises QosMismatch, which names those there are."""
    point = _entry_points().get(name)
    if point is None:
        raise QosMismatch(
            f"transport {name!r}", f"there are only {', '.join(names())}", "use one of those, or install it"
        )
    kind: type[Transport] = point.load()
    return kind()


def reliable_names() -> list[str]:
    return [name for name in names() if find(name).promises.reliable]
