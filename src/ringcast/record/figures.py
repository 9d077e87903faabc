"""What an experiment or a benchmark concludes, as values of the one results schema. Pure.

A figure has a name, and up to four values: what it is, what it is compared with, what is asked for, and whether that is
met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class Measured(NamedTuple):
    """One value. A configuration's values are text, or numbers."""

    experiment: str
    configuration: Mapping[str, str | float]
    repetition: int
    metric: str
    value: float
    unit: str


FIGURE, REFERENCE, TARGET, MET = "figure", "reference", "target", "met"


def measured(experiment: str, rows: Iterable[Mapping[str, Any]], *, quick: bool) -> Iterator[Measured]:
    """Of rows with name, value, unit, reference, target and met. What was not measured is left out."""
    for row in rows:
        if row["value"] is None:
            continue
        configuration = {"figure": row["name"], "quick": int(quick)}
        met = None if row["met"] is None else float(row["met"])
        for metric, value in (
            (FIGURE, row["value"]), (REFERENCE, row["reference"]), (TARGET, row["target"]), (MET, met),
        ):  # fmt: skip
            if value is not None:
                yield Measured(experiment, configuration, 0, metric, float(value), row["unit"])
