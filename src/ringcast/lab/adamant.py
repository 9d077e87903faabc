"""`ringcast lab run adamant`: the experiments of paper 004 (ADAMANT), and what is asked of our transports beside them.

Everything here is simulated, with the very recovery code that daemons run (`loss_simulation`). It leaves `report.md`,
`rows.json`, `results.parquet` and the pictures in a folder.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import msgspec

from ringcast.lab import adamant_asked, adamant_report, adamant_results, loss_simulation, picture
from ringcast.lab.adamant_environments import environment_grid
from ringcast.lab.adamant_grid import Cell, Grid, crowd_grid, paper_grid
from ringcast.lab.adamant_results import Result
from ringcast.lab.cleanup import LabError
from ringcast.lab.report import Findings, Steps

COMMAND = "ringcast lab run adamant"
NEEDS_ROOT = False
ENVIRONMENTS = "adamant environments"
"""The experiment that a model is trained on: `ringcast pipeline run train --experiment 'adamant environments'`."""
THREADS = 2
"""Runs are native and let the GIL go."""


class AdamantFindings(Findings):
    """With every run's figures, for Parquet."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Result] = []


def run(quick: bool, steps: Steps) -> AdamantFindings:
    paper, crowd, drawn = paper_grid(quick), crowd_grid(quick), environment_grid(quick)
    steps.expect(adamant_asked.STEPS + len(paper.cells) + len(crowd.cells) + len(drawn.cells))
    findings = AdamantFindings()
    findings.rows.append(adamant_asked.stalls(quick, steps))
    findings.rows += adamant_asked.delivered(steps)
    findings.rows.append(adamant_asked.implosion(steps))
    grid, many = run_grid("adamant", paper, steps), run_grid("adamant crowd", crowd, steps)
    findings.rows += adamant_asked.relate2(adamant_asked.mean_by_cell(grid, "relate2"))
    findings.rows += adamant_asked.needing_sockets()
    findings.rows += adamant_asked.wire(steps)
    findings.rows += adamant_asked.cost(quick, steps)
    elsewhere = run_grid(ENVIRONMENTS, drawn, steps)
    findings.results = [*grid, *many, *elsewhere]
    findings.add(adamant_report.conclude(grid, many))
    findings.tables.append(adamant_report.winners(elsewhere))
    findings.notes += [
        "simulated: hosts and links are a model (docs/experiments-loss.md), the recovery code is the real one",
        f"run on {_machine()}",
    ]
    return findings


def run_grid(experiment: str, grid: Grid, steps: Steps) -> list[Result]:
    results: list[Result] = []
    with ThreadPoolExecutor(THREADS) as pool:
        for cell in grid.cells:
            steps.step(cell.label)
            jobs = [(transport, seed) for transport in grid.transports for seed in range(1, grid.repetitions + 1)]
            results += pool.map(lambda job, cell=cell: _one(experiment, cell, job, grid.length(cell)), jobs)
    return results


def _one(experiment: str, cell: Cell, job: tuple[str, int], updates: int) -> Result:
    transport, seed = job
    return adamant_results.summarise(experiment, loss_simulation.run(cell.scenario(transport, updates, seed)))


def _machine() -> str:
    return f"{platform.machine()}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def write(findings: AdamantFindings, folder: Path, words: Sequence[str] = ()) -> list[Path]:
    """Leave the report in `folder` and return its files. Raises LabError, ParquetMissing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        report, rows, results = folder / "report.md", folder / "rows.json", folder / "results.parquet"
        adamant_results.write_parquet(
            findings.results, results, machine=_machine(), version=metadata.version("ringcast")
        )
        rows.write_bytes(msgspec.json.format(msgspec.json.encode([row.document() for row in findings.rows])))
        drawn = [picture.draw(one, folder) for one in findings.pictures] if picture.available() else []
        if not drawn:
            findings.notes.append(picture.MISSING)
        report.write_text(findings.markdown(" ".join([COMMAND, *words])))
        return [report, rows, results, *drawn]
    except OSError as exc:
        raise LabError(f"cannot write the results into {folder}: {exc}; choose another place with --out") from exc
