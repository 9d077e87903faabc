"""`--watch`: look again at intervals. On a terminal the tables stay in place, elsewhere they follow one another."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from ringcast.cli.parts.output import Output
from ringcast.cli.parts.units import positive

Sheet = tuple[str, tuple[str, ...], list[list[str]]]
"""(title, heads, cells) of one table."""

_T = TypeVar("_T")


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--watch",
        nargs="?",
        type=positive,
        const=1.0,
        metavar="S",
        help="repeat every S seconds (default: 1) until Ctrl-C",
    )


def watch(
    output: Output,
    every_s: float,
    look: Callable[[], _T],
    sheets: Callable[[_T], Iterable[Sheet]],
    record: Callable[[_T], Any],
) -> NoReturn:
    """Until Ctrl-C: show `sheets` of what `look` returns, or its `record` as JSON."""
    if output.terminal:
        from rich.console import Group
        from rich.live import Live

        from ringcast.cli.parts.output import drawn

        with Live(auto_refresh=False) as live:
            while True:
                tables = [drawn(heads, cells, title) for title, heads, cells in sheets(look())]
                live.update(Group(*tables), refresh=True)
                time.sleep(every_s)
    while True:
        seen = look()
        if output.json:
            output.record(record(seen))
        else:
            for title, heads, cells in sheets(seen):
                output.table(heads, cells, title)
        time.sleep(every_s)
