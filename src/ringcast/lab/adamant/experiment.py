"""`ringcast lab run adamant`: the experiments of paper 004 (ADAMANT), and what is asked of our transports beside them.

The grid is simulated with the recovery code that daemons run (`lab/simulation/packet_loss.py`). A part of it, and what
only sockets can answer, is measured on a real network first (`field`). Without root that part is left out, and the
report says so. Every run's figures go into the lake (`bronze.results`).
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ringcast.lab.adamant import recovery_bench, requirements
from ringcast.lab.adamant import report as adamant_report
from ringcast.lab.adamant import results as adamant_results
from ringcast.lab.adamant.environments import (
    CANDIDATES,
    GATE_SEED,
    TUNING_SEED,
    UNSEEN_NUMBER,
    UNSEEN_SEED,
    environment_grid,
    judged_grid,
)
from ringcast.lab.adamant.field import experiment as real_network
from ringcast.lab.adamant.grid import TRANSPORTS, Cell, Grid, crowd_grid, paper_grid
from ringcast.lab.adamant.kept import Kept, forget
from ringcast.lab.adamant.means import PIPELINES, Means
from ringcast.lab.adamant.results import Result
from ringcast.lab.adamant.rivals import Runs
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.rows import Row
from ringcast.lab.simulation import packet_loss
from ringcast.lab.simulation.workers import workers

NEEDS_ROOT = False
FIELD, GRID, DRAWN, NEVER_SEEN, FOR_TUNING, FOR_LETTING_IN = PARTS = (
    "field", "grid", "environments", "unseen", "tuning", "gate"
)  # fmt: skip
"""What `--part` may name: the real network, the paper's grid simulated, what models learn from, what the finished ones
of the package are judged by, once, what settings of the training are compared by, and what any new model is compared
with the one in use by."""
__all__ = ["ENVIRONMENTS", "FINDINGS", "NEEDS_ROOT", "PARTS", "PIPELINES", "conclude", "forget", "pipelines", "run",
           "run_grid"]  # fmt: skip
ENVIRONMENTS = "adamant environments"
"""The experiment that a model is trained on: `ringcast pipeline run train --experiment 'adamant environments'`."""
TUNING = "adamant tuning"
"""The experiment by which settings of the training are compared."""
UNSEEN = "adamant unseen"
"""The experiment by which the package's finished models are judged: `ringcast pipeline run unseen`."""
GATE = "adamant gate"
"""The experiment by which models are let in: `ringcast pipeline run unseen --experiment 'adamant gate'`."""


@dataclass
class AdamantFindings(Findings):
    """`simulated` says whether the paper's grid was run: what the lake has of it is of this run then."""

    simulated: bool = False


FINDINGS = AdamantFindings


def run(quick: bool, steps: Steps, part: str = "", folder: Path | None = None) -> AdamantFindings:
    """Simulated runs are kept in `folder` until `forget`, and not run again. Raises LabError."""
    findings = AdamantFindings()
    # Simulations that run when it is stopped end before the file is closed.
    with Kept(folder) as kept, workers() as pool:
        real = Findings()
        if part in ("", FIELD):
            # What is measured first, while nothing else runs here.
            real, measured = real_network.run(quick, steps, pool)
            findings.measured += adamant_results.measured(measured)
        if part in ("", GRID):
            _simulate(quick, findings, steps, pool, kept)
        _draw(quick, findings, steps, pool, kept, [part] if part else PARTS)
    findings.add(real)
    findings.notes += [
        "where it says simulated, hosts and links are a model (docs/experiments-loss.md); recovery code is real",
        f"run on {_machine()}",
    ]
    return findings


def _simulate(quick: bool, findings: AdamantFindings, steps: Steps, pool: Executor, kept: Kept) -> None:
    paper, crowd = paper_grid(quick), crowd_grid(quick)
    steps.expect(requirements.STEPS + 1 + len(paper.cells) + len(crowd.cells))
    steps.step("what the stages cost")
    costs = _costs(quick, findings)
    findings.rows.append(requirements.stalls(quick, steps, pool))
    findings.rows += requirements.delivered(steps, pool)
    findings.rows.append(requirements.implosion(steps))
    papers = run_grid(adamant_report.PAPERS, paper, steps, pool, kept)
    many = run_grid(adamant_report.CROWDS, crowd, steps, pool, kept)
    findings.rows += [requirements.wire(steps), *costs]
    for results in (papers, many):
        findings.measured += adamant_results.measured(results)
    findings.simulated = True


def _draw(
    quick: bool, findings: AdamantFindings, steps: Steps, pool: Executor, kept: Kept, parts: Sequence[str]
) -> None:
    grids = {
        DRAWN: (ENVIRONMENTS, environment_grid(quick)),
        NEVER_SEEN: (UNSEEN, judged_grid(quick, UNSEEN_SEED, UNSEEN_NUMBER)),
        FOR_TUNING: (TUNING, judged_grid(quick, TUNING_SEED)),
        FOR_LETTING_IN: (GATE, judged_grid(quick, GATE_SEED, UNSEEN_NUMBER)),
    }  # fmt: skip
    wanted = [grids[part] for part in parts if part in grids]
    steps.expect(sum(len(grid.cells) for _, grid in wanted))
    for experiment, grid in wanted:
        findings.measured += adamant_results.measured(run_grid(experiment, grid, steps, pool, kept))


def pipelines(part: str) -> tuple[str, ...]:
    """What Spark is to make of the values: of what models learn from, nothing before they do."""
    return PIPELINES if part in ("", GRID) else ()


def conclude(findings: AdamantFindings, analysed: Analysed) -> None:
    """Add what Spark made of the grid: means, who is best where, and the paper's statements beside them."""
    means = Means.of(analysed, [*TRANSPORTS, *CANDIDATES])
    findings.tables.append(adamant_report.winners(means, ENVIRONMENTS, CANDIDATES))
    if not findings.simulated:
        return
    findings.rows += requirements.relate2(means.by_cell(adamant_report.PAPERS, "relate2"))
    findings.rows += requirements.latencies(means.by_cell(adamant_report.PAPERS, "latency_mean"))
    findings.rows += requirements.lowest(
        *(means.by_cell(adamant_report.PAPERS, metric) for metric in ("relate", "relate2"))
    )
    findings.rows += requirements.frames(
        *(means.by_cell(adamant_report.PAPERS, metric) for metric in ("delivered", "usable_frames"))
    )
    findings.add(adamant_report.conclude(means, Runs.of(analysed, adamant_report.PAPERS)))


def _costs(quick: bool, findings: Findings) -> list[Row]:
    if not recovery_bench.available():
        findings.notes.append(recovery_bench.MISSING)
        return recovery_bench.unanswered()
    packets = recovery_bench.packets(quick)
    return recovery_bench.rows(recovery_bench.measure(packets), packets)


def run_grid(experiment: str, grid: Grid, steps: Steps, pool: Executor, kept: Kept | None = None) -> list[Result]:
    """In the order of the cells; a step is a cell."""
    seeds = range(1, grid.repetitions + 1)
    jobs = [(cell, transport, seed) for cell in grid.cells for transport in grid.transports for seed in seeds]
    # All at once: a core that waited for the last run of a cell would wait as often as there are cells.
    running = pool.map(partial(_one, experiment, grid, kept if kept is not None else Kept(None)), jobs)
    results = []
    for number, result in enumerate(running):
        if number % (len(jobs) // len(grid.cells)) == 0:
            steps.step(jobs[number][0].label)
        results.append(result)
    return results


def _one(experiment: str, grid: Grid, kept: Kept, job: tuple[Cell, str, int]) -> Result:
    cell, transport, seed = job
    scenario = cell.scenario(transport, grid.length(cell), seed)
    key = kept.key(experiment, scenario)
    if (known := kept.find(key)) is not None:
        return known
    result = adamant_results.summarise(experiment, packet_loss.run(scenario), name=transport)
    kept.add(key, result)
    return result


def _machine() -> str:
    return f"{platform.machine()}, {platform.system()} {platform.release()}, Python {platform.python_version()}"
