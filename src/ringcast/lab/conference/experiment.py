"""`lab run conference`: what is asked of RT-Conference, a row each; what cannot be measured here is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringcast.lab.conference import arithmetic, pages, people, processes
from ringcast.lab.measuring import files
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.testbed.network import unavailable
from ringcast.record.machine import measured_on

COMMAND = "ringcast lab run conference"
NEEDS_ROOT = False


def run(quick: bool, steps: Steps) -> Findings:
    """Raises LabError, BrokenError."""
    findings = arithmetic.run(steps)
    findings.add(processes.run(quick, steps))
    if reason := people.missing():
        findings.notes.append(f"no pages: {reason}")
    else:
        findings.add(pages.near(quick, steps))
        if reason := unavailable():
            findings.notes.append(f"no page behind a link: {reason}")
        else:
            findings.add(pages.far(quick, steps))
    findings.notes.append(measured_on())
    return findings


def write(findings: Findings, folder: Path, words: Sequence[str] = ()) -> list[Path]:
    """Leave the report in `folder` and return its files. Raises LabError."""
    return files.write(findings, folder, " ".join([COMMAND, *words]))
