"""`ringcast lab run all`: every experiment, and one page of what they found; `ringcast lab compare`: two of these."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ringcast.cli.parts.labs import concluding
from ringcast.cli.parts.output import Output, add_json
from ringcast.lab.measuring.picture import svg
from ringcast.lab.measuring.report import Picture
from ringcast.lab.measuring.rows import Row
from ringcast.lab.report import comparing, judging
from ringcast.lab.report.gathering import ROWS, STATE, Figures, Ran, Run, found, from_lake, ran
from ringcast.lab.report.page import page, rows_of
from ringcast.lab.report.running import run_all
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record.machine import code_version, this_machine

HELP = "compare what two 'ringcast lab run all' found"
REPORT = Path("out") / "report"
PAGE = "index.html"

_EXAMPLES = """\
examples:
  ringcast lab compare out/report-monday out/report    what changed by more than 5 %, and which verdicts
  ringcast lab compare A B --json                      the same as one list
"""


def run(args: argparse.Namespace, experiments: Mapping[str, str], lake: Path) -> int:
    """`experiments` are names and modules. Raises LabError."""
    output = Output(args.json)
    folder = args.out or REPORT
    began = time.monotonic()
    try:
        run_all(
            list(experiments), folder, lake, quick=args.quick, again=args.again, version=code_version(),
            machine=this_machine(), say=output.note, progress=output.progress,
        )  # fmt: skip
        ran_all = time.monotonic()
        output.note(f"Spark, after {time.monotonic() - began:.0f} s")
        told = concluding.conclude(experiments, folder, lake, output.note, output.progress)
        # What was run on another day took its time then.
        before_spark = sum(one.run.seconds for name, one in ran(folder).items() if name in experiments)
        everything = _write(folder, *told, args.quick, before_spark + time.monotonic() - ran_all)
    except KeyboardInterrupt:
        # Of what is there already; the rest is run the next time.
        with contextlib.suppress(OSError):
            _write(folder, quick=args.quick)
        raise
    except OSError as exc:
        raise LabError(f"cannot write the report into {folder}: {exc}; choose another place with --out") from exc
    _tell(output, everything, folder / PAGE)
    output.note(f"all of it took {time.monotonic() - began:.0f} s")
    return 1 if any(one.run.problem for one in everything.values()) else 0


def _write(
    folder: Path, summary: Sequence[dict[str, Any]] = (), latest: Sequence[dict[str, Any]] = (), quick: bool = False,
    seconds: float | None = None,
) -> dict[str, Ran]:  # fmt: skip
    """The page, and rows about it. Raises OSError."""
    everything = from_lake(ran(folder), latest)
    shown = found(everything)
    everything[judging.EXPERIMENT] = _judged(folder, judging.rows(shown, everything, quick, seconds), quick, seconds)
    (folder / PAGE).write_text(page(shown, everything, summary, *_charts()))
    return everything


def _judged(folder: Path, rows: list[Row], quick: bool, seconds: float | None) -> Ran:
    """The report as one of the experiments, so that it is compared like them. Raises OSError."""
    place = folder / judging.EXPERIMENT
    place.mkdir(parents=True, exist_ok=True)
    command = f"ringcast lab run all{' --quick' if quick else ''}"
    run = Run(judging.EXPERIMENT, command, quick, seconds or 0.0, code_version(), this_machine())
    (place / STATE).write_bytes(msgspec.json.encode(run))
    (place / ROWS).write_bytes(msgspec.json.encode([row.document() for row in rows]))
    return Ran(run, rows, Figures(), place)


def _tell(output: Output, everything: dict[str, Ran], path: Path) -> None:
    judged = {name: [row.met for row in one.rows if row.met is not None] for name, one in everything.items()}
    if output.json:
        output.document(
            [
                {"experiment": name, "met": sum(judged[name]), "judged": len(judged[name]),
                 "seconds": round(one.run.seconds, 1), "problem": one.run.problem}
                for name, one in everything.items()
            ]
        )  # fmt: skip
    else:
        output.table(
            ("experiment", "met", "of", "seconds", "problem"),
            [
                [name, str(sum(judged[name])), str(len(judged[name])), f"{one.run.seconds:.0f}", one.run.problem]
                for name, one in everything.items()
            ],
        )
    output.note(f"the report is {path}")


def _charts() -> tuple[Any, str]:
    try:
        drawn = importlib.import_module("ringcast.spark.analyst.charts")
    except ImportError:
        return (lambda picture, name: svg(picture)), ""

    def chart(picture: Picture, name: str) -> str:
        named = {
            f"{one.label} (paper)" if one.paper and "paper" not in one.label else one.label: one
            for one in picture.series if one.points
        }  # fmt: skip
        if picture.kind == "bars" and picture.labels:
            values = {label: _by_label(one.points, len(picture.labels)) for label, one in named.items()}
            labels = [label.replace("\n", "<br>") for label in picture.labels]
            figure = drawn.bars(picture.title, labels, values, picture.y)
        else:
            figure = drawn.lines(
                picture.title, {label: one.points for label, one in named.items()}, picture.x, picture.y
            )
        drawn.with_errors(figure, {label: one.errors for label, one in named.items()})
        papers = [label for label, one in named.items() if one.paper]
        if papers:
            drawn.on_the_right(figure, papers, picture.paper_y)
        text: str = drawn.html(figure, name)
        return text

    return chart, drawn.script()


def _by_label(points: Sequence[tuple[float, float]], labels: int) -> list[float | None]:
    known = {round(x): y for x, y in points}
    return [known.get(at) for at in range(labels)]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("before", metavar="A", type=Path, help="the folder of a report")
    parser.add_argument("after", metavar="B", type=Path, help="the folder of another")
    add_json(parser)


def compare(args: argparse.Namespace) -> int:
    """Raises LabError."""
    output = Output(args.json)
    sides = []
    for folder in (args.before, args.after):
        everything = ran(folder)
        if not everything:
            raise LabError(f"{folder} holds no report; 'ringcast lab run all --out {folder}' writes one")
        sides.append(rows_of(everything))
    changed = comparing.compared(sides[0], sides[1])
    if output.json:
        output.document([dict(zip(comparing.HEADS, line, strict=True)) for line in comparing.cells(changed)])
    elif changed:
        output.table(comparing.HEADS, comparing.cells(changed))
    else:
        output.line("nothing changed by more than 5 %, and no verdict")
    return 0
