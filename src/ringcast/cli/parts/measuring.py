"""What `hz`, `bw` and `delay` have in common: reports over windows of time until Ctrl-C or a count, then a summary."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import PROGRESS_FROM_S, Output, add_json
from ringcast.cli.parts.units import count, positive
from ringcast.model.tag import check_pattern

if TYPE_CHECKING:
    from ringcast.cli.parts.observation import Observation

Cells = Sequence[Sequence[str]]


def add_measuring(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="a tag, or 'lab/*/temp', 'lab/**'")
    parser.add_argument("--window", type=positive, default=1.0, metavar="S", help="report every S seconds (default: 1)")
    parser.add_argument("--count", type=count, metavar="N", help="end after N reports (default: at Ctrl-C)")
    add_access(parser)
    add_json(parser, 'one JSON object per report and line, the last with "summary": true,')


class Reports:
    """Numbers the reports and prints them; `rows` go into JSON, and by `cells` into what people see."""

    def __init__(self, args: argparse.Namespace, output: Output, heads: Sequence[str], note: str) -> None:
        self._output = output
        self._heads = heads
        self._note = note
        self._window_s: float = args.window
        self._most: int | None = args.count
        self._number = 0
        self._begin = time.monotonic()

    @property
    def done(self) -> bool:
        return self._most is not None and self._number >= self._most

    @property
    def due(self) -> float:
        """When the running window ends, as time.monotonic counts."""
        return self._begin + (self._number + 1) * self._window_s

    def wait(self) -> None:
        """Sleep until the running window ends."""
        self._output.rest(self.due, "measuring")

    def announce(self) -> None:
        """Show progress once per window, for a verb that cannot do it while it measures."""
        if self._window_s > PROGRESS_FROM_S:
            self._output.progress(f"measuring for {self._window_s:g} s")

    def report(self, rows: Sequence[Any], cells: Callable[[Sequence[Any]], Cells]) -> None:
        self._number += 1
        # After a pause (a stopped process, a sleeping laptop) there is no burst of reports.
        self._begin += max(0.0, time.monotonic() - self.due)
        self._print(rows, cells, summary=False)

    def summarise(self, rows: Sequence[Any], cells: Callable[[Sequence[Any]], Cells]) -> None:
        # To people one report is summary enough; programs get the last line they were promised.
        if self._number != 1 or self._output.json:
            self._print(rows, cells, summary=True)
        self._output.note(self._note)

    def _print(self, rows: Sequence[Any], cells: Callable[[Sequence[Any]], Cells], summary: bool) -> None:
        if self._output.json:
            self._output.record({"summary": summary, "time_ns": time.time_ns(), "publishers": rows})
        elif rows:
            self._output.table(self._heads, cells(rows), "\nin all" if summary else "")
        elif not summary:
            self._output.line("nothing was sent")


def observe(
    args: argparse.Namespace,
    verb: str,
    heads: Sequence[str],
    note: str,
    cells: Callable[[Sequence[Observation]], Cells],
) -> int:
    """Watch publishers without receiving, and report what `cells` makes of it."""
    from ringcast.cli.parts.observation import Observer

    check_pattern(args.pattern)
    output = Output(args.json)
    with connect(args, verb) as session:
        observer = Observer(session, args.pattern)
        for name, error in observer.unreadable.items():
            output.note(f"ringcast: {name} is left out: {error}")
        reports = Reports(args, output, heads, note)
        try:
            while not reports.done:
                reports.wait()
                seen = observer.look()
                reports.report(seen, cells)
        finally:
            reports.summarise(observer.totals(), cells)
    return 0
