"""The papers' own figures, as this package carries them (`tables/`). Their times are in milliseconds, here in seconds.

What the papers give only as a drawing (the figures of paper 001) is not here: its text was all there was to read.
"""

from __future__ import annotations

import csv
import io
from functools import cache
from importlib import resources
from typing import NamedTuple

PUSH_PULL, PUSH_PULL_QOS = "push-pull", "push-pull QoS"
_SECONDS = {"ms": 1e-3, "us": 1e-6, "s": 1.0}


class Figure(NamedTuple):
    """Where a figure stands in its paper."""

    paper: str
    table: str
    row: str
    column: str


def parse(text: str) -> dict[Figure, float]:
    """A table with the columns paper, table, row, column, value, unit. Raises ValueError, KeyError."""
    found = {}
    for line in csv.DictReader(io.StringIO(text)):
        where = Figure(line["paper"], line["table"], line["row"], line["column"])
        found[where] = float(line["value"]) * _SECONDS[line["unit"]]
    return found


@cache
def push_pull() -> dict[Figure, float]:
    """Tables 1 to 3 of paper 000, and 3 and 4 of paper 001, in seconds."""
    return parse((resources.files("ringcast.lab.measuring") / "tables" / "push_pull_tables.csv").read_text())


def figure(table: str, row: str, column: str, paper: str = PUSH_PULL) -> float | None:
    """In seconds; None when the paper has no such figure."""
    return push_pull().get(Figure(paper, table, row, column))
