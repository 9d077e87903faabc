"""The result of a benchmark: rows of the shape every `ringcast bench` and `ringcast lab` prints.

`value`, `reference` and `target` of a row share its unit; where the issue asks for a factor, the row's name states it
and `target` is the reference times it. `met` is null where nothing is asked or nothing could be compared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

RUN = "the run"
FIELDS = ("name", "value", "unit", "reference", "target", "met")


@dataclass(frozen=True)
class Row:
    """One measured line.

    `cell` is where it stands in the tables for humans (title, who, column); None: a line of its own.
    """

    name: str
    value: float | None
    unit: str
    reference: float | None = None
    target: float | None = None
    met: bool | None = None
    cell: tuple[str, str, str] | None = None

    @property
    def is_note(self) -> bool:
        """Whether it says something in words only."""
        return not self.unit


def tidy(value: float | None) -> float | None:
    """Four significant digits: more is noise. None where nothing was measured."""
    return None if value is None else float(f"{value:.4g}")


def plain(name: str, value: float | None, unit: str, reference: float | None = None) -> Row:
    """A row that nothing is asked of."""
    return Row(name, tidy(value), unit, tidy(reference))


def entry(title: str, who: str, column: str, value: float, unit: str) -> Row:
    """A contender's figure, one of a table of them."""
    name = f"{title}, {column}: {who}" if column else f"{title}: {who}"
    return Row(name, tidy(value), unit, cell=(f"{title} ({unit})", who, column))


def about(text: str, value: float, unit: str) -> Row:
    """A figure of the run itself rather than of a contender."""
    return Row(text, tidy(value), unit, cell=(RUN, text, ""))


def note(text: str) -> Row:
    """Something the reader must know that is no figure: who is absent and why, what failed."""
    return Row(text, None, "")


def at_most(name: str, value: float | None, unit: str, target: float | None, reference: float | None = None) -> Row:
    """A row whose value must not exceed `target`. Not measured is not met; nothing to compare with is neither."""
    met = False if value is None else None if target is None else value <= target
    return Row(name, tidy(value), unit, tidy(reference), tidy(target), met)


def at_least(name: str, value: float | None, unit: str, target: float | None, reference: float | None = None) -> Row:
    """A row whose value must reach `target`."""
    met = False if value is None else None if target is None else value >= target
    return Row(name, tidy(value), unit, tidy(reference), tidy(target), met)


def scaled(reference: float | None, factor: float) -> float | None:
    """A target as a multiple of a reference that may be missing."""
    return None if reference is None else reference * factor


def as_json(rows: Sequence[Row]) -> str:
    """The rows as one JSON list."""
    return json.dumps([{name: asdict(row)[name] for name in FIELDS} for row in rows], indent=1)
