"""What the experiments left in their folders, sorted by the papers' tables and figures. Reads files only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    before: dict[str, float] = {}
    """By the name of a row: its value in the run before."""


class Found(NamedTuple):
    """A table or figure of a paper beside ours."""

    entry: Entry
    rows: list[Row]
    tables: list[Table]
    pictures: list[Picture]
    drawn: list[Path]
    before: dict[str, float] = {}

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


def from_lake(all_ran: dict[str, Ran], figures: Iterable[Mapping[str, Any]]) -> dict[str, Ran]:
    """With values as Spark reads them from the lake (rows of `gold.benchmarks`), beside those of the run before. Rows
    that the lake does not have stay as they are."""
    known = {(one["experiment"], one["quick"], one["machine"], one["figure"]): one for one in figures}
    made = {}
    for name, one in all_ran.items():
        rows, before = [], {}
        for row in one.rows:
            told = known.get((name, one.run.quick, one.run.machine, row.name))
            if told is not None:
                values = {field: told[field] for field in ("value", "unit", "reference", "target", "met")}
                row = msgspec.structs.replace(row, **values)
                if told["before"] is not None:
                    before[row.name] = told["before"]
            rows.append(row)
        made[name] = one._replace(rows=rows, before=before)
    return made


def found(all_ran: dict[str, Ran]) -> list[Found]:
    return [_found(entry, all_ran.get(entry.experiment)) for entry in entries()]


def beyond(all_ran: dict[str, Ran], shown: Iterable[Found]) -> dict[str, Figures]:
    """By experiment: tables and pictures that no entry of a paper shows."""
    taken: dict[str, set[str]] = {}
    for one in shown:
        names = [*(table.title for table in one.tables), *(picture.name for picture in one.pictures)]
        taken.setdefault(one.entry.experiment, set()).update(names)
    left = {
        name: Figures(
            [table for table in one.figures.tables if table.title not in taken.get(name, ())],
            [picture for picture in one.figures.pictures if picture.name not in taken.get(name, ())],
        )
        for name, one in all_ran.items()
    }  # fmt: skip
    return {name: figures for name, figures in left.items() if figures.tables or figures.pictures}


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
        one.before,
    )  # fmt: skip
