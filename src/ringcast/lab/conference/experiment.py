"""`lab run conference`: what is asked of RT-Conference, a row each; what cannot be measured here is said."""

from __future__ import annotations

from ringcast.lab.conference import arithmetic, pages, people, processes
from ringcast.lab.measuring import sampled
from ringcast.lab.measuring.report import Analysed, Findings, Steps
from ringcast.lab.measuring.sampled import PIPELINES
from ringcast.lab.testbed.network import unavailable

__all__ = ["NEEDS_ROOT", "PIPELINES", "conclude", "run"]
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
    return findings


def conclude(findings: Findings, analysed: Analysed) -> None:
    """Rows whose samples are in the lake, as Spark computes them."""
    rows = [row for part in (arithmetic, processes, pages) for row in part.judged(analysed)]
    sampled.by_spark(findings, Findings(rows))
