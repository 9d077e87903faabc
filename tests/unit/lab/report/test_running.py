"""Experiments as processes of their own: real ones, of a shell that stands in for Python."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ringcast.lab.report import running
from ringcast.lab.report.gathering import Run, ran

EXPERIMENTS = """\
#!/bin/sh
# -m ringcast lab run NAME ...
case "$5" in
breaks)
    for word in one two three four; do echo "$word" >&2; done
    exit 3 ;;
hangs)
    echo "ringcast step: 1 of 2, waiting" >&2
    exec sleep 600 ;;
hangs-on)
    trap '' TERM
    echo "ringcast step: 1 of 2, waiting" >&2
    exec sleep 600 ;;
silent)
    exit 4 ;;
*)
    echo "ringcast step: 1 of 1, measuring" >&2
    echo "$@" >"$(dirname "$0")/words" ;;
esac
"""


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "python"
    path.write_text(EXPERIMENTS)
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(running, "END_S", 0.2)
    return path


def run_all(folder: Path, *names: str, monkeypatch: pytest.MonkeyPatch | None = None) -> tuple[dict[str, Run], str]:
    """States by experiment, and what was said. With `monkeypatch` those that hang have two seconds."""
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if monkeypatch is not None and " of " in text:
            monkeypatch.setattr(running, "QUICK_S", 2.0 if "hangs" in text else 600.0)

    running.run_all(
        names, folder, folder / "lake", quick=True, again=False, version="1.0+a", machine="m", say=say,
        progress=said.append,
    )  # fmt: skip
    return {name: one.run for name, one in ran(folder).items()}, "\n".join(said)


def test_one_that_fails_is_named_by_its_last_lines_and_the_next_runs(tmp_path: Path, python: Path) -> None:
    states, said = run_all(tmp_path / "report", "breaks", "silent", "works")
    assert {name: run.problem for name, run in states.items()} == {
        "breaks": "two / three / four", "silent": "it ended with 4", "works": "",
    }  # fmt: skip
    assert re.search(r"failed after \d+ s: two / three / four", said)
    assert "3 of 3: works, 1 of 1, measuring" in said
    words = (python.parent / "words").read_text()
    assert words.startswith("-m ringcast lab run works --quick --json --out ")
    assert words.rstrip().endswith("--together")


@pytest.mark.parametrize("name", ["hangs", "hangs-on"])
def test_one_that_takes_too_long_is_ended_and_the_next_runs(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "report"
    states, _ = run_all(folder, name, "works", monkeypatch=monkeypatch)
    assert states[name].problem == "it took longer than 2 s"
    assert states["works"].problem == ""
    assert (folder / name / running.STEPS).read_text().endswith("\t1 of 2, waiting\n")


def test_the_next_time_only_what_failed_is_run(tmp_path: Path, python: Path) -> None:
    folder = tmp_path / "report"
    run_all(folder, "breaks", "works")
    _, said = run_all(folder, "breaks", "works")
    assert "2 of 2: works is there already" in said
    assert "1 of 2: breaks is there already" not in said
