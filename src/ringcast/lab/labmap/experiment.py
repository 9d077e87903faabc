"""`ringcast lab run labmap`: paper 002's test and its statements, and what is asked of variables.

The full form keeps every repetition in out/labmap/repetitions.jsonl as it is done; interrupted and started again it
goes on from there. Spark draws the lines of Tables 1 and 2 from `bronze.results` (`lines`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ringcast.lab.labmap import (
    asked,
    clocks,
    figures,
    grid,
    joining,
    lines,
    peers_asked,
    results,
    snooping,
    statements,
)
from ringcast.lab.labmap.field import LabMapNetwork
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.testbed.cleanup import LabError

PIPELINES = lines.PIPELINES
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
                tables, found = grid.run(bed, quick, steps, left)
            except OSError as exc:
                raise LabError(f"cannot keep repetitions in {left.parent}: {exc}") from exc
        findings.add(tables)
        for drive in drives:
            findings.measured += results.measured(results.of(drive, 0))
        findings.measured += results.measured(found)
        if not bed.is_urgent:
            findings.notes.append("the system did not let daemons and measuring processes have real-time priority")
    known = clocks.run(quick, steps)
    findings.add(known)
    findings.add(statements.rows(found, clocks.absolute_ms(known)))
    findings.pictures += figures.pictures(found)
    findings.add(peers_asked.run(quick, steps))
    findings.rows.sort(key=lambda row: ("asked", "shape", "figure").index(row.kind))
    findings.notes.append("a repetition is one drive of 10 to 100 periods after a warm-up of 10")
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Add Tables 1 and 2, whose lines Spark drew."""
    findings.tables += lines.tables(analysed)
