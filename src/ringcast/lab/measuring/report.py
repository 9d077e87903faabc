"""What experiments return: rows, tables for people, and descriptions of charts. Pure values.

`Findings` can be added up. A chart is described here and drawn by `picture`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ringcast.lab.measuring.rows import HEADS, Kind, Row, cells
from ringcast.record.figures import Measured

US = 1e-6
TITLES: dict[Kind, str] = {
    "asked": "What is asked for",
    "shape": "The shapes of the paper",
}


@dataclass(frozen=True)
class Series:
    """One line of a chart, or one group of bars. `paper` ones have another scale, on the right."""

    label: str
    points: Sequence[tuple[float, float]]
    paper: bool = False
    errors: Sequence[float] = ()


@dataclass(frozen=True)
class Picture:
    """A drawing, by the name of its file without the ending. For bars the x of points count the `labels`."""

    name: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    kind: Literal["lines", "bars"] = "lines"
    labels: Sequence[str] = ()
    paper_y: str = "paper: round trip (ms)"
    bottom: float = 0.0
    """Where the scale of y begins: not at 0 for shares close to 100."""


@dataclass(frozen=True)
class Table:
    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [f"## {self.title}", "", _line(self.heads), _line(["---"] * len(self.heads))]
        return "\n".join([*lines, *map(_line, self.rows), ""])


@dataclass
class Findings:
    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    """Values for the lake, of which Spark makes the tables that need more than a look."""

    def add(self, other: Findings) -> None:
        self.rows += other.rows
        self.tables += other.tables
        self.pictures += other.pictures
        self.notes += [note for note in other.notes if note not in self.notes]
        self.measured += other.measured

    def summaries(self) -> list[Table]:
        """The rows that are judged, what is asked for first. Rows without a target are in the tables."""
        found = {kind: [row for row in self.rows if row.kind == kind] for kind in TITLES}
        return [Table(title, HEADS, cells(found[kind])) for kind, title in TITLES.items() if found[kind]]

    def markdown(self, command: str) -> str:
        """The whole report, with its pictures beside it."""
        parts = [f"# {command}", "", *(table.markdown() for table in (*self.summaries(), *self.tables))]
        parts += [f"![{picture.title}]({picture.name}.svg)\n" for picture in self.pictures]
        parts += [f"- {note}" for note in self.notes]
        return "\n".join(parts) + "\n"


class Analysed(Protocol):
    """What the pipelines made of an experiment's values: rows of the lake's tables."""

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All of a gold table, by its name."""


class Steps(Protocol):
    """Progress of an experiment."""

    def expect(self, number: int) -> None:
        """`number` more steps will follow."""

    def step(self, what: str) -> None:
        """The next one begins."""

    def rounds(self, wanted: int, least: int, most_s: float) -> Iterable[int]:
        """Numbers of repetitions, from 0: all that are wanted. Where all experiments run together in their quick forms,
        those that fit into `most_s`, but `least` of them (see `pacing`)."""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
