"""What of security is in the lake: cells, and what the pipeline `cells` makes of their samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed
from ringcast.lab.measuring.rows import Row, at_most, scaled
from ringcast.lab.measuring.samples import thinned
from ringcast.record.figures import Measured

EXPERIMENT = "security"
CALM, FLOODED = "calm", "flooded"
DELAYS = 10_000
"""So many of a stream's delays go into the lake, evenly by rank: during a million requests there are ten times more."""
MOST_TIMES = 3.0
"""What the p99 of a stream may be beside a flood, in times that without."""


class Attacked(NamedTuple):
    """A kind of attack on sealed packets."""

    attack: str


class Compared(NamedTuple):
    """What was measured in which mesh: `sealed`, `plain`, or of each round how many times plain sealed took or made."""

    what: str
    mesh: str


class Joined(NamedTuple):
    """A node that joined a closed mesh."""

    by: str


class Flood(NamedTuple):
    """A stream while so many connections, requests or datagrams came, or before that (`calm`)."""

    kind: str
    number: int
    when: str


Cell = TypeVar("Cell", bound=tuple[Any, ...])


def values(cell: tuple[Any, ...], metric: str, repetitions: Iterable[Iterable[float]], unit: str) -> Iterator[Measured]:
    return sampled.values(EXPERIMENT, {cell: list(repetitions)}, metric, unit)


def told(analysed: Analysed, metric: str, kind: type[Cell]) -> dict[Cell, Mapping[str, Any]]:
    return sampled.rows_of(analysed, EXPERIMENT, metric, kind)


def streamed(
    kind: str, count: int, calm_ns: Sequence[int], flooded_ns: Sequence[int], missing: int
) -> Iterator[Measured]:
    """A stream before a flood, and beside it."""
    flood = Flood(kind, count, FLOODED)
    for when, taken_ns in ((CALM, calm_ns), (FLOODED, flooded_ns)):
        delays = [1e-9 * ns for ns in thinned(taken_ns, DELAYS)]
        yield from values(flood._replace(when=when), "delay", [delays], "s")
    yield from values(flood, "missing", [[missing]], "messages")


def stream_rows(analysed: Analysed, name: str, flood: Flood) -> list[Row]:
    """Is the stream beside that flood complete, and how much longer do its slowest messages take?"""
    missing, delays = (told(analysed, metric, Flood) for metric in ("missing", "delay"))
    calm_us = 1e6 * delays[flood._replace(when=CALM)]["p99"]
    return [
        at_most(f"{name}: messages missing of a reliable stream", missing[flood]["total"], "messages", 0),
        at_most(f"{name}: p99 of the stream", 1e6 * delays[flood]["p99"], "us", scaled(calm_us, MOST_TIMES), calm_us),
    ]
