"""What an experiment concludes: rows of {name, value, unit, reference, target, met}. Pure.

`value`, `reference` and `target` share the unit. `met` is None where nothing is asked, or where there was nothing to
compare with; then the name says what was missing. Not measured is not met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Kind = Literal["asked", "shape", "figure"]


class Row(msgspec.Struct, frozen=True):
    """`kind` says where it is shown, and is not part of the printed row."""

    name: str
    value: float | None
    unit: str
    reference: float | None = None
    target: float | None = None
    met: bool | None = None
    kind: Kind = "figure"

    def document(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in ("name", "value", "unit", "reference", "target", "met")}


def figure(name: str, value: float | None, unit: str, reference: float | None = None) -> Row:
    """A row of which nothing is asked."""
    return Row(name, tidy(value), unit, tidy(reference))


def at_most(
    name: str, value: float | None, unit: str, target: float | None, reference: float | None = None,
    kind: Kind = "asked",
) -> Row:  # fmt: skip
    met = None if target is None else value is not None and value <= target
    return Row(name, tidy(value), unit, tidy(reference), tidy(target), met, kind)


def at_least(
    name: str, value: float | None, unit: str, target: float | None, reference: float | None = None,
    kind: Kind = "asked",
) -> Row:  # fmt: skip
    met = None if target is None else value is not None and value >= target
    return Row(name, tidy(value), unit, tidy(reference), tidy(target), met, kind)


def scaled(reference: float | None, factor: float) -> float | None:
    """A target as a multiple of a reference that may be missing."""
    return None if reference is None else reference * factor


def tidy(value: float | None) -> float | None:
    """Four significant digits: more is noise."""
    return None if value is None else float(f"{value:.4g}")


def number(value: float | None) -> str:
    """A figure at a readable length."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def cells(rows: Sequence[Row]) -> list[list[str]]:
    """For a table whose columns are `HEADS`."""
    verdicts = {True: "yes", False: "no", None: ""}
    return [
        [row.name, number(row.value), row.unit, _bound(row.reference), _bound(row.target), verdicts[row.met]]
        for row in rows
    ]


def _bound(value: float | None) -> str:
    return "" if value is None else number(value)


HEADS = ("what", "here", "unit", "reference", "target", "met")
