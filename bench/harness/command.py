"""The command line every benchmark script shares: options in, a table or one JSON list out.

The table and the JSON list go to standard output; progress and notes to standard error.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness import machine
from harness.contenders import Contenders, adapters, assemble
from harness.rows import Row, about, as_json, note
from harness.run import Run
from harness.tables import show
from harness.workers import Workers
from ringcast.errors import RingcastError
from ringcast.record.machine import code_version, digest, this_machine

BENCH = Path(__file__).parents[1]

Measure = Callable[[Run], list[Row]]


def _parse(argv: Sequence[str] | None, description: str, parts: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer samples: under a minute per question")
    parser.add_argument("--json", action="store_true", help="print one JSON list of rows")
    parser.add_argument(
        "--peers", default="", metavar="A,B", help="only these peers (files in bench/peers); ours always runs"
    )
    parser.add_argument(
        "--part", action="append", default=[], metavar="NAME",
        help=f"only this part, may be repeated: {', '.join(parts)}" if parts else "for questions that have parts",
    )  # fmt: skip
    lake = Path(os.environ.get("RINGCAST_LAKE", "out/lake"))
    parser.add_argument("--lake", metavar="DIR", type=Path, default=lake, help=f"keep the figures there ({lake})")
    args = parser.parse_args(argv)
    if strangers := sorted(set(args.part) - set(parts)):
        known = f"its parts are {', '.join(parts)}" if parts else "this question has no parts"
        parser.error(f"there is no part {strangers[0]!r}: {known}")
    return args


def main(
    description: str, measures: Sequence[Measure], argv: Sequence[str] | None = None, parts: Sequence[str] = (),
    *, strict: bool = False,
) -> int:  # fmt: skip
    """Run the benchmarks and print their rows; `parts` are those that `--part` may name.

    Returns 0, 1 when ours could not run or, with `strict`, a row is not met, 2 for bad options, 130 after Ctrl-C.
    """
    args = _parse(argv, description, parts)
    errors = Console(stderr=True)
    try:
        wanted = adapters(frozenset(filter(None, args.peers.split(","))))
    except ValueError as exc:
        errors.print(f"error: {exc}", markup=False, soft_wrap=True)
        return 2
    # A terminated run cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    version = f"{code_version()}+{digest(BENCH)}"  # as it is now, before anything is measured
    before = machine.usage()
    with tempfile.TemporaryDirectory(prefix="ringcast-bench-") as name:
        try:
            with _bar(errors) as progress, Workers(Path(name), reuse=args.quick) as workers:
                chosen = frozenset(args.part)
                rows = _measure(assemble(wanted, workers.folder), workers, args.quick, measures, progress, chosen)
        except KeyboardInterrupt:
            errors.print("interrupted; everything that was started has been ended")
            return 130
    used = machine.usage() - before
    rows.append(about("during the run, CPU used by other programs", used.others_percent, "% of a core"))
    rows.append(about("during the run, time the hypervisor gave to other machines", used.stolen_percent, "% of a core"))
    _keep(rows, args, version, errors)
    if args.json:
        for row in rows:
            if row.is_note:
                errors.print(row.name, markup=False, soft_wrap=True)
        print(as_json(rows))
    else:
        show(rows, Console())
    missed = strict and any(row.met is False for row in rows)
    return 1 if missed or any(row.name.startswith("skipped ringcast") for row in rows) else 0


def _keep(rows: Sequence[Row], args: argparse.Namespace, version: str, errors: Console) -> None:
    """The figures into the lake: `ringcast pipeline run history` sets them beside those of earlier runs."""
    try:
        from ringcast.record import figures, results
    except ImportError as exc:
        errors.print(f"the figures are not kept, because {exc.name} is not installed", markup=False)
        return
    question = f"bench {Path(sys.argv[0]).stem.replace('_', '-')}"
    told = [asdict(row) for row in rows if not row.is_note]
    try:
        results.keep(
            figures.measured(question, told, quick=args.quick), args.lake, machine=this_machine(), version=version
        )
    except (OSError, RingcastError) as exc:
        errors.print(f"the figures are not kept: {exc}", markup=False, soft_wrap=True)


def _bar(errors: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def _measure(
    found: Contenders, workers: Workers, quick: bool, measures: Sequence[Measure], progress: Progress,
    parts: frozenset[str],
) -> list[Row]:  # fmt: skip
    cores = machine.cores()
    rows = [about(f"machine: {this_machine()}", len(cores), "cores used")]
    versions = ", ".join(f"{one.name} {one.version}" for one in found.contenders)
    rows.append(note(f"measured: {versions}"))
    rows += [note(f"skipped {who}: {why}") for who, why in found.absent.items()]
    task = progress.add_task("", total=0)
    total = 0

    def expect(what: str, steps: int) -> None:
        nonlocal total
        total += steps
        progress.update(task, description=what, total=total)

    def advance(what: str) -> None:
        progress.update(task, description=what, advance=1)

    run = Run(found.contenders, cores, workers, quick, expect, advance, parts)
    for measure in measures:
        rows += measure(run)
    return rows + [note(remark) for remark in run.notes]
