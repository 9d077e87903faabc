"""`lab run conference`: what is asked of RT-Conference, a row each; what cannot be measured here is said."""

from __future__ import annotations

from ringcast.lab.conference import arithmetic, pages, people, processes
from ringcast.lab.measuring.report import Findings, Steps
from ringcast.lab.testbed.network import unavailable

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
