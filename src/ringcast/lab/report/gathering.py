"""What the experiments left in their folders, sorted by the papers' tables and figures. Reads files only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from ringcast.lab.measuring.report import Picture, Table
from ringcast.lab.measuring.rows import Row
from ringcast.lab.report.entries import Entry, entries, matches

ROWS, FIGURES, STATE = "rows.json", "figures.json", "run.json"


class Figures(msgspec.Struct, frozen=True):
    """Of one experiment: what people look at."""

    tables: list[Table] = []
    pictures: list[Picture] = []
    notes: list[str] = []


class Run(msgspec.Struct, frozen=True):
    """How an experiment went. `problem` is '' where it ended well."""

    experiment: str
    command: str
    quick: bool
    seconds: float
    version: str
    machine: str
    problem: str = ""


class Ran(NamedTuple):
    run: Run
    rows: list[Row]
    figures: Figures
    folder: Path


class Found(NamedTuple):
    """A table or figure of a paper beside ours."""

    entry: Entry
    rows: list[Row]
    tables: list[Table]
    pictures: list[Picture]
    drawn: list[Path]

    @property
    def empty(self) -> bool:
        return not (self.rows or self.tables or self.pictures or self.drawn)

    @property
    def verdict(self) -> str:
        judged = [row.met for row in self.rows if row.met is not None]
        if not judged:
            return "shown" if not self.empty else "described" if self.entry.instead else "missing"
        return f"{sum(judged)} of {len(judged)} met"


def ran(folder: Path) -> dict[str, Ran]:
    """By experiment; what cannot be read was not run."""
    found = {}
    for state in sorted(folder.glob(f"*/{STATE}")):
        try:
            run = msgspec.json.decode(state.read_bytes(), type=Run)
            rows = state.with_name(ROWS)
            figures = state.with_name(FIGURES)
            found[run.experiment] = Ran(
                run,
                msgspec.json.decode(rows.read_bytes(), type=list[Row]) if rows.exists() else [],
                msgspec.json.decode(figures.read_bytes(), type=Figures) if figures.exists() else Figures(),
                state.parent,
            )
        except (OSError, msgspec.MsgspecError):
            continue
    return found


def found(all_ran: dict[str, Ran]) -> list[Found]:
    return [_found(entry, all_ran.get(entry.experiment)) for entry in entries()]


def _found(entry: Entry, one: Ran | None) -> Found:
    if one is None:
        return Found(entry, [], [], [], [])
    pictures = [picture for picture in one.figures.pictures if matches(picture.name, entry.pictures)]
    drawn = {picture.name for picture in one.figures.pictures}
    return Found(
        entry,
        [row for row in one.rows if matches(row.name, entry.rows) and row.value is not None],
        [table for table in one.figures.tables if matches(table.title, entry.tables)],
        pictures,
        [path for path in sorted(one.folder.glob("*.svg"))
         if path.stem not in drawn and matches(path.stem, entry.pictures)],
    )  # fmt: skip
