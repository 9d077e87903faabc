"""From what an experiment measured to its report: values into the lake, Spark's tables of them, files, figures.

One experiment by itself is concluded where it ran. Of those that run together each leaves its findings in its folder
(`leave`), and all are concluded at the end (`conclude`), because starting Spark takes longer than most of its jobs.
Invariant: findings that were left stay until their report is written, so what was stopped is concluded the next time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from ringcast.errors import RingcastError
from ringcast.lab.measuring import files
from ringcast.lab.measuring.report import Findings
from ringcast.lab.report.gathering import STATE, Run
from ringcast.lab.testbed.cleanup import LabError
from ringcast.record import figures
from ringcast.record.figures import Measured

INSTALL = "pip install 'ringcast[spark]'"
LEFT = "findings.msgpack"
KINDS = ("asked", "shape", "figure")


def keep(findings: Findings, values: Sequence[Measured], lake: Path) -> bool:
    """Every value into the lake, before anything is made of it: what was measured must not be lost. Raises LabError."""
    try:
        results = importlib.import_module("ringcast.record.results")
    except ImportError as exc:
        findings.notes.append(f"the values are not kept, because {exc.name} is not installed: {INSTALL}")
        return False
    try:
        results.keep(values, lake)
    except OSError as exc:
        raise LabError(f"cannot write the results into {lake}: {exc}; choose another place with --lake") from exc
    return True


def finish(
    name: str, experiment: ModuleType, findings: Findings, folder: Path, lake: Path, command: str, *, quick: bool,
    kept: bool,
) -> list[Path]:  # fmt: skip
    """Leave the report, and its figures in the lake. Raises LabError."""
    findings.rows.sort(key=lambda row: KINDS.index(row.kind))
    written = files.write(findings, folder, command, getattr(experiment, "draw", files.nothing_more))
    if kept:
        if hasattr(experiment, "forget"):
            experiment.forget(folder)
        keep(findings, list(figures.measured(name, [row.document() for row in findings.rows], quick=quick)), lake)
    return written


def leave(experiment: ModuleType, findings: Findings, folder: Path, command: str) -> None:
    """For `conclude`; and a report of what is known already. The values are in the lake. Raises LabError."""
    files.write(findings, folder, command, getattr(experiment, "draw", files.nothing_more))
    findings.measured = []
    try:
        (folder / LEFT).write_bytes(msgspec.msgpack.encode(findings))
    except OSError as exc:
        raise LabError(f"cannot write into {folder}: {exc}; choose another place with --out") from exc
    if hasattr(experiment, "forget"):
        experiment.forget(folder)


def conclude(
    experiments: Mapping[str, str], folder: Path, lake: Path, say: Callable[[str], None],
    progress: Callable[[str], None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:  # fmt: skip
    """Whatever was left in the folders of these experiments (by name, with their modules), on one session of Spark.
    Returns what it says of all figures in the lake: a summary by experiment, and the last value of each. One that
    fails is named in its state and stops no other. Raises LabError, OSError."""
    left = {name: importlib.import_module(module) for name, module in experiments.items()
            if (folder / name / LEFT).exists()}  # fmt: skip
    try:
        analysing = importlib.import_module("ringcast.spark.experiments.analysing")
    except ImportError as exc:
        say(f"without {exc.name} the papers' tables and the history are left out: {INSTALL}")
        for name, experiment in left.items():
            _conclude_one(name, experiment, folder / name, lake, None, [], progress)
        return [], []
    done: list[str] = []
    with analysing.analysis(lake) as analysis:
        for name, experiment in left.items():
            if problem := _conclude_one(name, experiment, folder / name, lake, analysis, done, progress):
                say(f"{name}: {problem}")
        progress("Spark: every figure, run after run")
        analysis.run(["history"])
        return analysis.summary(), analysis.latest()


def _conclude_one(
    name: str, experiment: ModuleType, folder: Path, lake: Path, analysis: Any, done: list[str],
    progress: Callable[[str], None],
) -> str:  # fmt: skip
    """What went wrong, or ''. `done` has the pipelines that were run."""
    run = msgspec.json.decode((folder / STATE).read_bytes(), type=Run)
    kind: type[Findings] = getattr(experiment, "FINDINGS", Findings)
    problem = ""
    try:
        findings = msgspec.msgpack.decode((folder / LEFT).read_bytes(), type=kind)
        if analysis is not None and (pipelines := getattr(experiment, "PIPELINES", ())):
            new = [one for one in pipelines if one not in done]
            analysis.run(new, lambda what: progress(f"{name}, {what}"))
            done += new
            experiment.conclude(findings, analysis)
    except Exception as exc:  # whatever Spark or one experiment's conclusion raises, the others are concluded
        problem = f"its values were not analysed: {_first_line(exc)}"
    else:
        finish(name, experiment, findings, folder, lake, run.command, quick=run.quick, kept=analysis is not None)
    (folder / LEFT).unlink()
    if problem:
        (folder / STATE).write_bytes(msgspec.json.encode(msgspec.structs.replace(run, problem=problem)))
    return problem


def _first_line(exc: Exception) -> str:
    said = str(exc).strip().splitlines()
    first = said[0][:300] if said else ""
    return first if isinstance(exc, RingcastError) and first else f"{type(exc).__name__}: {first}"
