"""`ringcast lab run labmap`: paper 002's test and its statements, and what is asked of variables.

The full form keeps every repetition in out/labmap/repetitions.jsonl as it is done; interrupted and started again it
goes on from there. From `bronze.results` Spark draws the lines of Tables 1 and 2 (`fit`, `planes`) and computes what is
said of the test (`rates`). Without Spark the latter is computed in Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ringcast.lab.labmap import asked, clocks, grid, joining, peers_asked, results, snooping
from ringcast.lab.labmap.field import LabMapNetwork
from ringcast.lab.labmap.paper import figures, lines, rates, statements
from ringcast.lab.labmap.paper.rates import InPython, Rates
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.testbed.cleanup import LabError

PIPELINES = (*lines.PIPELINES, *rates.PIPELINES)
FOLDER = Path("out/labmap")
REPETITIONS = "repetitions.jsonl"
RECEIVERS = 5
_ASKED: Sequence[Callable[[LabMapNetwork, bool, Steps], Findings]] = (
    asked.state_changes, asked.multicast_cost, asked.on_change_bytes, asked.ordinary, joining.late_joiners,
    joining.by_frame, snooping.filtered,
)  # fmt: skip


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    with LabMapNetwork(RECEIVERS) as bed:
        bed.start(bed.mesh.names)
        floor, drives = asked.latency_floor(bed, quick, steps)
        findings.add(floor)
        for part in _ASKED:
            findings.add(part(bed, quick, steps))
        with tempfile.TemporaryDirectory() as scratch:
            left = Path(scratch) / REPETITIONS if quick else FOLDER / REPETITIONS
            try:
                left.parent.mkdir(parents=True, exist_ok=True)
                found = grid.run(bed, quick, steps, left)
            except OSError as exc:
                raise LabError(f"cannot keep repetitions in {left.parent}: {exc}") from exc
        for drive in drives:
            findings.measured += results.measured(results.of(drive, 0))
        findings.measured += results.measured(found)
        if not bed.is_urgent:
            findings.notes.append("the system did not let daemons and measuring processes have real-time priority")
    known = clocks.run(quick, steps)
    findings.add(known)
    findings.add(_concluded(InPython(found), clocks.absolute_ms(known)))
    findings.add(peers_asked.run(quick, steps))
    findings.rows.sort(key=lambda row: ("asked", "shape", "figure").index(row.kind))
    findings.notes.append("a repetition is one drive of 10 to 100 periods after a warm-up of 10")
    return findings


def forget(folder: Path) -> None:
    """All that was measured is in the lake, so the next time it is measured anew. What is not whole is gone on with."""
    left = FOLDER / REPETITIONS
    if left.exists() and grid.is_whole(left):
        left.unlink()


def conclude(findings: Findings, analysed: Analysed) -> None:
    """What is said of the test, as Spark computes it from the lake, and Tables 1 and 2, whose lines Spark drew."""
    sampled.by_spark(findings, _concluded(analysed))
    findings.tables += lines.tables(analysed)


def _concluded(analysed: Analysed, far_ms: float | None = None) -> Findings:
    found = Rates.of(analysed)
    concluded = statements.rows(found, far_ms)
    concluded.pictures += figures.pictures(found)
    return concluded
