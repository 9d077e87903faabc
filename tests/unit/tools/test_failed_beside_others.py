"""Which failures are tried once more, alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from failed_beside_others import failed_tests, main, tried_again

TESTS = Path(__file__).parents[2]


def _failed(folder: Path, run: str, *tests: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / run).write_text("".join(f"{name}\n" for name in tests))


def test_failures_of_all_runs_are_found(tmp_path: Path) -> None:
    _failed(tmp_path, "mesh", "tests/b.py::test_two")
    _failed(tmp_path, "unit", "tests/a.py::test_one[x]", "tests/b.py::test_two")
    assert failed_tests(tmp_path) == ["tests/a.py::test_one[x]", "tests/b.py::test_two"]


@pytest.mark.parametrize("cache", ["cacheprovider", "no:cacheprovider"])
def test_failures_are_found_whether_pytest_keeps_a_cache_or_not(tmp_path: Path, cache: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    (tmp_path / "test_none.py").write_text("not Python\n")
    command = [sys.executable, "-m", "pytest", "-p", "failures", "-p", cache, "-c", os.devnull, "--rootdir", "."]
    own = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own["RINGCAST_FAILED"] = str(tmp_path / "failed" / "run")
    for name in ("test_it.py", "test_none.py"):
        assert subprocess.run([*command, name], cwd=tmp_path, env=own, capture_output=True).returncode != 0
        assert failed_tests(tmp_path / "failed") == [{"test_it.py": "test_it.py::test_bad"}.get(name, name)]


def test_a_few_tests_are_tried_again_but_not_many_and_no_file_that_cannot_be_read() -> None:
    assert tried_again(["a.py::test"])
    assert not tried_again([f"a.py::test[{number}]" for number in range(9)])
    assert not tried_again(["a.py"])
    assert not tried_again([])


@pytest.mark.parametrize(("body", "status"), [("pass", 0), ("assert False", 1)])
def test_only_what_passes_alone_is_forgiven_and_it_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], body: str, status: int
) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(f"def test_it():\n    {body}\n")
    _failed(tmp_path / "failed", "unit", f"{test}::test_it")
    assert main(str(tmp_path / "failed")) == status
    assert ("UNSTEADY" in capfd.readouterr().out) == (status == 0)
