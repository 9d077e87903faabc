"""`ringcast hz`: how often publishers send."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringcast.cli.parts.measuring import add_measuring, observe
from ringcast.cli.parts.units import show_hz, show_ns

if TYPE_CHECKING:
    from ringcast.cli.parts.observation import Observation

HELP = "How often publishers send, with the shortest, longest and deviation of the intervals between their messages."

EPILOG = """\
Nothing is received: rates come from the publishers' own sequence numbers and send times in their rings, so that neither
this tool nor a slow terminal can lower them. For publishers slower than the window, choose a longer one.

examples:
  ringcast hz lab/cam                       until Ctrl-C
  ringcast hz 'lab/**' --window 5 --count 1 one report over five seconds
"""

_HEADS = ("tag", "publisher", "rate", "sent", "min", "mean", "max", "std", "intervals", "last message")
_NOTE = "measured: sequence numbers and send times written by the publishers; nothing was received for it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_measuring(parser)


def run(args: argparse.Namespace) -> int:
    return observe(args, "hz", _HEADS, _NOTE, cells)


def cells(seen: Sequence[Observation]) -> list[list[str]]:
    rows = []
    for one in seen:
        figures = one.figures
        rows.append(
            [
                one.tag, str(one.publisher), show_hz(figures.rate_hz), str(figures.sent),
                show_ns(figures.interval_min_ns), show_ns(figures.interval_mean_ns), show_ns(figures.interval_max_ns),
                show_ns(figures.interval_std_ns), str(figures.intervals),
                f"{show_ns(figures.silent_ns)} ago" if figures.silent_ns is not None else "-",
            ]
        )  # fmt: skip
    return rows
