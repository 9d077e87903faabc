"""Where a verb's output goes: results to standard output, everything else to standard error.

Results are tables and lines for people, or with `--json` one document, or one object per line for streams. On a
terminal tables are drawn by rich; into a pipe they are plain columns, so that `grep` and `awk` work. Invariant: with
`--json`, standard output holds JSON and nothing else.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.table import Table

PROGRESS_FROM_S = 2.0
"""A verb that takes longer than this shows progress."""


def add_json(parser: argparse.ArgumentParser, what: str = "one JSON document") -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} instead of text")


class Output:
    """`json` is what the option says. `terminal` is whether a person reads standard output directly."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self.terminal = not json and sys.stdout.isatty()
        self._watched = sys.stderr.isatty()
        self._progress = False

    def document(self, value: Any) -> None:
        """A whole result as JSON, indented for a reader."""
        self._clear()
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
        sys.stdout.flush()

    def record(self, value: Any) -> None:
        """One object of a stream, on a line of its own and at once."""
        self._clear()
        sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
        sys.stdout.flush()

    def line(self, text: str = "") -> None:
        self._clear()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
        """Columns whose first is the subject. Numbers line up on the right."""
        self._clear()
        if self.terminal:
            from rich.console import Console

            Console().print(drawn(heads, rows, title))
            return
        if title:
            sys.stdout.write(title + "\n")
        sys.stdout.write(plain(heads, rows))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Something about the result that is not the result."""
        self._clear()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def progress(self, text: str) -> None:
        """A line that the next one replaces. Only on a terminal: a log has no use for it."""
        if self._watched:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._progress = True

    def rest(self, until: float, doing: str) -> None:
        """Sleep until that monotonic time, with progress when it takes long."""
        total = until - time.monotonic()
        while (left := until - time.monotonic()) > 0:
            if total > PROGRESS_FROM_S:
                self.progress(f"{doing}: {total - left:.0f} of {total:.0f} s")
            time.sleep(min(left, 0.5 if total > PROGRESS_FROM_S else left))
        self._clear()

    def _clear(self) -> None:
        if self._progress:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._progress = False


def plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, each as wide as its widest cell, at least two spaces between."""
    table = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    right = [_is_numeric([row[column] for row in rows]) for column in range(len(heads))]
    lines = []
    for row in table:
        cells = [
            cell.rjust(width) if aligned else cell.ljust(width)
            for cell, width, aligned in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip() + "\n")
    return "".join(lines)


def drawn(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Table:
    """The same for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column, head in enumerate(heads):
        numeric = _is_numeric([row[column] for row in rows])
        table.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: a value may hold what rich would take for markup
    return table


def _is_numeric(cells: Sequence[str]) -> bool:
    return bool(cells) and all(cell in ("", "-") or cell.removeprefix("-")[:1].isdigit() for cell in cells)
