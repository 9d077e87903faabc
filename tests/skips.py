"""A skipped test is never silent: reasons are shown at the end, and with CI=true an unexpected skip is a failure.

With RINGCAST_SKIPPED=FILE the reasons are written there too, for whoever runs several of these beside each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

EXPECTED = ("this kernel has no IPv6",)
"""What nobody can install: a skip for these reasons is no failure anywhere."""

_skipped: dict[str, list[str]] = {}


def unexpected(reason: str, strict: bool) -> bool:
    """Whether a test that is skipped for this reason fails. Pure."""
    return strict and reason not in EXPECTED


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    _skipped.setdefault(reason, []).append(report.nodeid)
    if unexpected(reason, os.environ.get("CI", "").lower() in ("true", "1", "yes")):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, which CI=true forbids: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _judge(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason, tests in _skipped.items():
        terminalreporter.write_line(f"not tested: {len(tests)}, for {reason}")


def pytest_sessionfinish() -> None:
    if place := os.environ.get("RINGCAST_SKIPPED"):
        path = Path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps({"reason": reason, "tests": tests}) + "\n" for reason, tests in _skipped.items())
        )
