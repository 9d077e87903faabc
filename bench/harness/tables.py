"""Rows for humans: what the issue asks first, then a table per situation, then what else must be known."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness.rows import RUN, Row


def number(value: float | None) -> str:
    """A figure at a readable length."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def ratio(row: Row) -> str:
    """How many times one is the other, the larger by the smaller: the name says which way is good."""
    if not row.value or not row.reference:
        return ""
    return f"{max(row.value, row.reference) / min(row.value, row.reference):.2f}x"


def _asked(rows: Sequence[Row]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("what")
    for heading in ("ringcast", "reference", "ratio", "target", "unit", "met"):
        table.add_column(heading, justify="left" if heading == "unit" else "right", no_wrap=True)
    verdicts = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}
    for row in rows:
        reference, target = (number(bound) if bound is not None else "" for bound in (row.reference, row.target))
        table.add_row(row.name, number(row.value), reference, ratio(row), target, row.unit, verdicts[row.met])
    return table


def _figures(title: str, rows: Sequence[Row]) -> Table:
    """One table of contenders, in the order of their first column."""
    cells = {row.cell[1:]: row.value for row in rows if row.cell}
    columns = list(dict.fromkeys(column for _, column in cells))
    contenders = sorted(dict.fromkeys(who for who, _ in cells), key=lambda who: cells.get((who, columns[0])) or 0.0)
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=any(columns)
    )
    table.add_column("", min_width=20)
    for column in columns:
        table.add_column(column, justify="right", min_width=9)
    for who in contenders:
        table.add_row(who, *(number(cells[who, column]) if (who, column) in cells else "" for column in columns))
    return table


def show(rows: Sequence[Row], console: Console) -> None:
    """Print all rows."""
    console.print(_asked([row for row in rows if row.cell is None and not row.is_note]))
    for title in dict.fromkeys(row.cell[0] for row in rows if row.cell):
        if title != RUN:
            console.print()
            console.print(_figures(title, [row for row in rows if row.cell and row.cell[0] == title]))
    console.print()
    for row in rows:
        if row.cell and row.cell[0] == RUN:
            console.print(f"{row.name}: {number(row.value)} {row.unit}", markup=False, soft_wrap=True)
        elif row.is_note:
            console.print(row.name, markup=False, soft_wrap=True)
