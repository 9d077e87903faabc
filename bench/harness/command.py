"""The command line every benchmark script shares: options in, a table or one JSON list out.

The table and the JSON list go to standard output; progress and notes to standard error.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness import machine
from harness.cast import assemble
from harness.rows import Row, about, as_json, note
from harness.run import Run
from harness.tables import show

Measure = Callable[[Run], list[Row]]


def _parse(argv: Sequence[str] | None, description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer samples: under a minute per question")
    parser.add_argument("--json", action="store_true", help="print one JSON list of rows")
    parser.add_argument(
        "--peers", default="", metavar="A,B", help="only these peers (files in bench/peers); ours always runs"
    )
    return parser.parse_args(argv)


def main(description: str, measures: Sequence[Measure], argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks and print their rows.

    Returns 0, 1 when ours could not run, 2 for bad options, 130 after Ctrl-C.
    """
    args = _parse(argv, description)
    # A terminated run cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as name:
        try:
            with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
                rows, absent = _measure(args, measures, Path(name), progress, errors)
        except ValueError as exc:
            errors.print(f"error: {exc}", markup=False)
            return 2
        except KeyboardInterrupt:
            errors.print("interrupted; everything that was started has been ended")
            return 130
    if args.json:
        print(as_json(rows))
    else:
        show(rows, Console())
    return 1 if "ringcast" in absent else 0


def _measure(
    args: argparse.Namespace, measures: Sequence[Measure], folder: Path, progress: Progress, errors: Console
) -> tuple[list[Row], dict[str, str]]:
    cores = machine.cores()
    cast = assemble(frozenset(filter(None, args.peers.split(","))), folder)
    rows = [about(f"machine: {machine.describe()}", len(cores), "cores used")]
    for who, why in cast.absent.items():
        errors.print(f"skipped {who}: {why}", markup=False, soft_wrap=True)
        rows.append(note(f"skipped {who}: {why}"))
    task = progress.add_task("", total=0)
    total = 0

    def expect(what: str, steps: int) -> None:
        nonlocal total
        total += steps
        progress.update(task, description=what, total=total)

    run = Run(
        cast.contenders,
        cores,
        folder,
        args.quick,
        expect,
        lambda text: progress.update(task, description=text, advance=1),
    )
    before = machine.usage()
    for measure in measures:
        rows += measure(run)
    for remark in run.notes:
        errors.print(remark, markup=False, soft_wrap=True)
        rows.append(note(remark))
    used = machine.usage() - before
    rows.append(about("during the run, CPU used by other programs", used.others_percent, "% of a core"))
    rows.append(about("during the run, time the hypervisor gave to other machines", used.stolen_percent, "% of a core"))
    return rows, cast.absent
