"""Whether a system makes sense beyond its types: names that exist once, places that are nodes. Pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence

from ringcast.admission.model import AdmissionError, Pull, Stream, Subscriber, System
from ringcast.admission.recovery import check_transport

_PLACES = ("publisher", "subscriber")


def check(system: System) -> System:
    """Return it when it can be computed with. Raises AdmissionError."""
    if not system.nodes:
        raise AdmissionError("nodes", "there is no node; a system has at least one")
    _finite(system, "")
    nodes = _once("nodes[{}].name", [node.name for node in system.nodes])
    _links(system, nodes)
    _once("streams[{}].tag", [stream.tag for stream in system.streams])
    _once("tasks[{}].name", [task.name for task in system.tasks])
    for i, task in enumerate(system.tasks):
        _known(f"tasks[{i}].node", task.node, nodes)
    for i, stream in enumerate(system.streams):
        _stream(f"streams[{i}]", stream, nodes)
    return system


def _stream(where: str, stream: Stream, nodes: set[str]) -> None:
    _known(f"{where}.node", stream.node, nodes)
    check_transport(f"{where}.transport", stream.transport)
    _once(where + ".subscribers[{}].name", [one.name for one in stream.subscribers])
    _once(where + ".pulls[{}].name", [one.name for one in stream.pulls])
    found: list[tuple[str, Subscriber | Pull]] = [
        *((f"subscribers[{j}]", one) for j, one in enumerate(stream.subscribers)),
        *((f"pulls[{j}]", pull) for j, pull in enumerate(stream.pulls)),
    ]
    for j, wanted in enumerate(stream.subscribers):
        if wanted.transport:
            check_transport(f"{where}.subscribers[{j}].transport", wanted.transport)
        if wanted.rate_hz is not None and (wanted.rate_hz[0] > wanted.rate_hz[1] or wanted.every != 1):
            reason = "goes from the least to the most; with it, 'every' is left out"
            raise AdmissionError(f"{where}.subscribers[{j}].rate_hz", reason)
        if wanted.sizes is not None and (wanted.sizes[0] > wanted.sizes[1] or wanted.scaled_bytes is not None):
            reason = "goes from the least to the most; with it, 'scaled_bytes' is left out"
            raise AdmissionError(f"{where}.subscribers[{j}].sizes", reason)
    for name, one in found:
        _known(f"{where}.{name}.node", one.node, nodes)
        _place(f"{where}.{name}.at", one.at, nodes)


def _place(where: str, at: str, nodes: set[str]) -> None:
    name = at.removeprefix("node:")
    if name != at:
        _known(where, name, nodes)
    elif at not in _PLACES:
        raise AdmissionError(where, f"is {at!r}; it is 'publisher', 'subscriber' or 'node:NAME'")


def _links(system: System, nodes: set[str]) -> None:
    seen: dict[frozenset[str], int] = {}
    for i, link in enumerate(system.links):
        _known(f"links[{i}].a", link.a, nodes)
        _known(f"links[{i}].b", link.b, nodes)
        pair = frozenset((link.a, link.b))
        if len(pair) == 1:
            raise AdmissionError(f"links[{i}]", f"joins {link.a!r} to itself; a link joins two nodes")
        if pair in seen:
            raise AdmissionError(f"links[{i}]", f"{link.a!r} and {link.b!r} are joined already by links[{seen[pair]}]")
        seen[pair] = i


def _finite(value: object, where: str) -> None:
    """TOML can write `inf` and `nan`, which no range forbids."""
    if isinstance(value, float) and not math.isfinite(value):
        raise AdmissionError(where, f"is {value}; here belongs a number, or leave it out")
    if isinstance(value, tuple):
        for i, inner in enumerate(value):
            _finite(inner, f"{where}[{i}]")
    for name in getattr(value, "__struct_fields__", ()):
        _finite(getattr(value, name), f"{where}.{name}" if where else name)


def _once(where: str, names: Sequence[str]) -> set[str]:
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in seen:
            raise AdmissionError(where.format(i), f"{name!r} is there twice, first as {where.format(seen[name])}")
        seen[name] = i
    return set(seen)


def _known(where: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        close = difflib.get_close_matches(name, list(names), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "add it to nodes"
        raise AdmissionError(where, f"there is no node {name!r}; {hint}")
