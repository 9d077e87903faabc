"""With RINGCAST_FAILED=FILE the names of tests that failed are written there, for whoever tries them once more.

Not taken from pytest's cache: where that is switched off (`-p no:cacheprovider`), failures would not be found.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_failed: dict[str, None] = {}


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def pytest_sessionfinish() -> None:
    place = os.environ.get("RINGCAST_FAILED")
    if place and _failed:
        path = Path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{name}\n" for name in _failed))
