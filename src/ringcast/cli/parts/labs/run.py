"""`ringcast lab run`: the experiments of the papers. A table of them; each is a module with `run`.

Invariant: however it ends, no namespace, daemon or measuring process of it stays.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from ringcast.cli.parts.labs import concluding, everything
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.lab.measuring.pacing import paced
from ringcast.lab.measuring.report import Findings
from ringcast.lab.report.running import STEP
from ringcast.record.machine import code_version, measured_on

if TYPE_CHECKING:
    from rich.progress import Progress

HELP = "run the experiments of a paper beside its own figures"

EXPERIMENTS = {
    "push-pull": (
        "ringcast.lab.push_pull.experiment",
        "papers 000 and 001: round trips by place of the proxy, size, subscribers and hops; peers; the tag table",
    ),
    "adamant": (
        "ringcast.lab.adamant.experiment",
        "paper 004: transports under loss, by rate and receivers; simulated, and a part on a real network (root)",
    ),
    "adaptation": (
        "ringcast.lab.adaptation.experiment",
        "paper 004, future work: a transport that chooses itself; simulated, and smaller on a real network (root)",
    ),
    "labmap": (
        "ringcast.lab.labmap.experiment",
        "paper 002: variables by number, period and subscribers; loss, latency, jitter, late joiners, CPU left over",
    ),
    "placement": (
        "ringcast.lab.placement.experiment",
        "paper 001, section 2: where proxies belong; the solver beside an oracle, Tables 1 to 3, predicted delays",
    ),
    "yarp": (
        "ringcast.lab.yarp.experiment",
        "paper 003: priorities of threads and packets at a loaded card and a loaded switch (root)",
    ),
    "reservation": (
        "ringcast.lab.reservation.experiment",
        "paper 001, experiment 5: round trips beside hogs and traffic, without and with reservations (root)",
    ),
    "bounds": (
        "ringcast.lab.bounds.experiment",
        "papers 000 and 001: measured maximum beside the computed bound, over random task sets (real-time priorities)",
    ),
    "conference": (
        "ringcast.lab.conference.experiment",
        "paper 000, section 4: RT-Conference; mixing, 32 participants, pages in Chromium and behind bad links (root)",
    ),
    "security": (
        "ringcast.lab.security.experiment",
        "sealed streams attacked by a million packets of each kind, and what seals cost beside a mesh without them",
    ),
}
"""Name: (module with run(quick, steps) and conclude(findings, analysed), what it is). Its PIPELINES are run between the
two, over the values that were measured; its draw(folder) leaves more pictures beside the report."""
ALL = "all"

_EXAMPLES = """\
experiments:
{listing}

examples:
  ringcast lab run push-pull                     everything, some minutes; tables here, pictures in out/push-pull
  ringcast lab run push-pull --quick --json      about a minute, one list of rows
  ringcast lab run adamant                       everything, about an hour on two cores, half of it a real network
                                                 (root); tables here, pictures in out/adamant
  ringcast lab run adamant --part environments   only what models learn from; goes on where it was stopped
  ringcast lab run adamant --quick --json        about a minute, one list of rows
  ringcast lab run labmap --quick --json         about a minute, one list of rows
  ringcast lab run placement --quick             about a minute, no root needed
  ringcast lab run security --json               attacks on sealed packets and the cost of seals; no root needed
  ringcast lab run all --quick                   all of them, one after the other; out/report/index.html has every table
                                                 and figure of the papers beside ours; goes on where it was stopped
  ringcast lab run adamant --out /tmp/figures    report.md, rows.json and pictures go there

The peers are those of the benchmarks: 'sh bench/setup_peers.sh' in a source checkout installs them. Without them the
rows that compare have no reference. See docs/experiments.md for how to read the results.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    width = max(map(len, EXPERIMENTS))
    parser.epilog = _EXAMPLES.format(
        listing="\n".join(f"  {name:{width}}  {what}" for name, (_, what) in EXPERIMENTS.items())
    )
    parser.add_argument("experiment", metavar="NAME", choices=[*sorted(EXPERIMENTS), ALL],
                        help=f"{', '.join(EXPERIMENTS)}, or {ALL} of them, into one report")  # fmt: skip
    parser.add_argument("--again", action="store_true", help=f"{ALL}: also those that this code has run already")
    parser.add_argument(
        "--part",
        metavar="PART",
        default="",
        help="adamant: only field, grid, environments, unseen, tuning or gate; adaptation: only simulated or real",
    )
    parser.add_argument("--quick", action="store_true", help="fewer samples: about a minute")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write report, rows and pictures here (out/NAME)")
    parser.add_argument("--lake", metavar="DIR", type=Path,
                        help="every value goes there, for Spark (default: RINGCAST_LAKE, or out/lake)")  # fmt: skip
    # As one of all: says its steps, and leaves its findings to who runs them.
    parser.add_argument("--together", action="store_true", help=argparse.SUPPRESS)
    add_json(parser, "one list of {name, value, unit, reference, target, met}")
    # Accepted after the experiment too; `program.main` looks for it itself.
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def needs_network(args: argparse.Namespace) -> bool:
    """Whether the experiment runs in network namespaces, and so needs root."""
    if args.experiment == ALL:
        return False  # those that need it say so in the report
    needed: bool = getattr(importlib.import_module(EXPERIMENTS[args.experiment][0]), "NEEDS_ROOT", True)
    return needed


def run(args: argparse.Namespace) -> int:
    """Raises LabError, TableError."""
    lake = args.lake or Path(os.environ.get("RINGCAST_LAKE", "out/lake"))
    if args.experiment == ALL:
        return everything.run(args, {name: module for name, (module, _) in EXPERIMENTS.items()}, lake)
    experiment = importlib.import_module(EXPERIMENTS[args.experiment][0])
    output = Output(args.json)
    folder = args.out or Path("out") / args.experiment
    only = _part(experiment, args, folder, lake)
    words = [word for word, said in (("--quick", args.quick), ("--json", args.json)) if said]
    command = " ".join(["ringcast lab run", args.experiment, *(["--part", args.part] if args.part else []), *words])
    code_version()
    with Bar(told=args.together, hurried=args.together and args.quick) as bar:
        findings = experiment.run(args.quick, bar, **only)
        findings.notes.append(measured_on())
        pipelines = experiment.pipelines(args.part) if args.part else getattr(experiment, "PIPELINES", ())
        kept = concluding.keep(findings, findings.measured, lake)
        if args.together and kept:
            concluding.leave(experiment, findings, folder, command)
            return 0
        if pipelines and findings.measured:
            _analyse(experiment, findings, pipelines, lake, bar, kept)
    written = concluding.finish(
        args.experiment, experiment, findings, folder, lake, command, quick=args.quick, kept=kept
    )  # fmt: skip
    if output.json:
        output.document([row.document() for row in findings.rows])
    else:
        for table in (*findings.tables, *findings.summaries()):
            output.table(table.heads, table.rows, table.title)
            output.line()
    for note in findings.notes:
        output.note(note)
    output.note(f"written into {folder}: {', '.join(path.name for path in written)}")
    if kept:
        output.note(f"every value is in {lake}: ringcast pipeline sql --lake {lake} 'select * from bronze.results'")
    return 0


def _part(experiment: ModuleType, args: argparse.Namespace, folder: Path, lake: Path) -> dict[str, Any]:
    """What an experiment that has parts is told besides. Raises Misuse."""
    parts = getattr(experiment, "PARTS", ())
    if args.part and args.part not in parts:
        known = f"its parts are {', '.join(parts)}" if parts else "it has no parts"
        raise Misuse(f"{args.experiment} has no part {args.part!r}; {known}")
    told: dict[str, Any] = {"part": args.part, "folder": folder} if parts else {}
    if getattr(experiment, "CHOOSES_BY_LAKE", False):
        told["lake"] = lake
    # What another one of all measured already.
    return {**told, "beside": folder.parent} if args.together and hasattr(experiment, "BESIDE") else told


def _analyse(
    experiment: ModuleType, findings: Findings, pipelines: Sequence[str], lake: Path, bar: Bar, kept: bool
) -> None:
    """Tables of the values, made by Spark. Without it the report says how to get them."""
    try:
        analysing = importlib.import_module("ringcast.spark.experiments.analysing")
    except ImportError as exc:
        missing = exc.name
        findings.notes.append(
            f"the paper's tables are left out, because {missing} is not installed: {concluding.INSTALL}"
        )
        return
    if not kept:
        return
    bar.expect(len(pipelines))
    with analysing.analysis(lake) as analysis:
        analysis.run(pipelines, bar.step)
        experiment.conclude(findings, analysis)


class Bar:
    """A progress bar on a terminal; nothing in a log. With `told`, lines for who runs all experiments; `hurried`
    ones repeat less (`pacing`)."""

    def __init__(self, told: bool = False, hurried: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress: Progress = Progress(
            *columns, console=console, transient=True, disable=told or not console.is_terminal, refresh_per_second=2
        )
        self._told, self._hurried = told, hurried
        self._total = self._done = 0
        self._task = self._progress.add_task("starting", total=None)

    def expect(self, number: int) -> None:
        self._total += number
        self._progress.update(self._task, total=self._total)

    def step(self, what: str) -> None:
        self._progress.update(self._task, description=what, advance=1)
        self._done += 1
        if self._told:
            print(f"{STEP}{self._done} of {max(self._total, self._done)}, {what}", file=sys.stderr, flush=True)

    def rounds(self, wanted: int, least: int, most_s: float) -> Iterable[int]:
        return paced(wanted, least, most_s, time.monotonic) if self._hurried else range(wanted)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
