"""Transports by name. Ours and everybody else's are found the same way: by entry point."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ringcast.errors import QosMismatch
from ringcast.model.carrier import automatic, is_automatic
from ringcast.transport.interface import Transport

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ringcast.transports"


@cache
def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes as long to import as all of asyncio

    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    return sorted(_entry_points())


@cache
def find(name: str) -> Transport:
    """The transport that a name, or a text such as `lateral+nak:r=4,c=3`, stands for: of the words before the colon the
    first that is registered is given the whole text. Raises QosMismatch, which names those there are."""
    words = name.partition(":")[0].split("+")
    point = next((_entry_points()[word] for word in words if word in _entry_points()), None)
    if point is None:
        raise QosMismatch(
            f"transport {name!r}", f"there are only {', '.join(names())}", "use one of those, or install it"
        )
    kind: type[Transport] = point.load()
    of = getattr(kind, "of", None)
    if of is not None:
        made: Transport = of(name)
        return made
    if name != point.name:
        raise QosMismatch(f"transport {name!r}", f"{point.name} takes no parameters", f"use {point.name!r}")
    return kind()


def check_transport(name: str) -> None:
    """Raises QosMismatch where nobody could be carried by it: it is neither a transport that is installed here nor
    `auto:METRIC`, which leaves the choice to the mesh."""
    if not is_automatic(name):
        find(name)
        return
    try:
        automatic(name)
    except ValueError as exc:
        raise QosMismatch(f"transport {name!r}", str(exc), "as 'auto:relate2', or name a transport") from exc


def reliable_names() -> list[str]:
    """Those that promise it by themselves, and together with a stage that asks again."""
    alone = [name for name in names() if find(name).promises.reliable]
    weak = [name for name in names() if name not in alone and hasattr(_entry_points()[name].load(), "of")]
    return alone + [f"{name}+nak" for name in weak if find(f"{name}+nak").promises.reliable]
