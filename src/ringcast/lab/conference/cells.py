"""What of the conference is in the lake: cells, and what the pipeline `cells` makes of their samples. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed
from ringcast.record.figures import Measured

EXPERIMENT = "conference"


class Mixed(NamedTuple):
    """Samples unlike the oracle's, block by block. `where`: `core`, or `page` for the page's JavaScript."""

    scheme: str
    speakers: int
    where: str


class FullScale(NamedTuple):
    """Samples that wrapped, block by block; then one speaks alone: blocks until it is at full volume."""

    loud_speakers: int


class Side(NamedTuple):
    """One side of the dialogue, block by block: taken for silent, a true pause, talk that was taken for silence."""

    speaker: str


class Burst(NamedTuple):
    """Of blocks that come at once: what each made the buffer discard, and what was left."""

    blocks: int


class Listener(NamedTuple):
    """One of the crowd: blocks by speaker, received and lost; late ones; delays."""

    participant: str
    node: str


class Page(NamedTuple):
    """What was measured of pages, and for how long."""

    what: str
    seconds: float


Cell = TypeVar("Cell", bound=tuple[Any, ...])


def values(cell: tuple[Any, ...], metric: str, samples: Iterable[float], unit: str) -> Iterator[Measured]:
    return sampled.values(EXPERIMENT, {cell: [samples]}, metric, unit)


def told(analysed: Analysed, metric: str, kind: type[Cell]) -> dict[Cell, Mapping[str, Any]]:
    return sampled.rows_of(analysed, EXPERIMENT, metric, kind)
