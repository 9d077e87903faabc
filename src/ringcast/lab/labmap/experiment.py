"""`ringcast lab run labmap`: paper 002's test and its statements, and what is asked of variables.

The full form keeps every repetition in out/labmap/repetitions.jsonl as it is done; interrupted and started again it
goes on from there. Spark draws the lines of Tables 1 and 2: `ringcast pipeline run fit --input out/labmap/results`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from ringcast.lab.adamant.results import ParquetMissing
from ringcast.lab.labmap import asked, grid, results
from ringcast.lab.labmap.field import LabMapNetwork
from ringcast.lab.measuring import files
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.push_pull.experiment import machine
from ringcast.lab.testbed.cleanup import LabError

COMMAND = "ringcast lab run labmap"
FOLDER = Path("out/labmap")
REPETITIONS = "repetitions.jsonl"
RECEIVERS = 5

_found: list[results.Result] = []
"""What `run` measured, for `write`."""


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError."""
    findings = Findings()
    _found.clear()
    with LabMapNetwork(RECEIVERS) as bed:
        bed.start(bed.mesh.names)
        floor, drives = asked.latency_floor(bed, quick, steps)
        findings.add(floor)
        for part in asked.PARTS:
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
            _found.extend(results.of(drive, 0))
        _found.extend(found)
    findings.rows.sort(key=lambda row: ("asked", "shape", "figure").index(row.kind))
    findings.notes.append(machine())
    findings.notes.append("a repetition is one drive of 10 to 100 periods after a warm-up of 5")
    findings.notes.append("the lines of Tables 1 and 2: ringcast pipeline run fit --input out/labmap/results")
    return findings


def write(findings: Findings, folder: Path, words: Sequence[str] = ()) -> list[Path]:
    """Leave the report in `folder` and return its files. Raises LabError."""
    return files.write(findings, folder, " ".join([COMMAND, *words]), _parquet)


def _parquet(folder: Path) -> list[Path]:
    path = folder / "results" / "labmap.parquet"
    path.parent.mkdir(exist_ok=True)
    try:
        results.write_parquet(_found, path, machine=machine(), version=version("ringcast"))
    except ParquetMissing as exc:
        raise LabError(str(exc)) from exc
    return [path]
