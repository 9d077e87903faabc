"""Which failures are tried once more, alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from failed_beside_others import failed_tests, main, tried_again


def _cache(folder: Path, run: str, *tests: str) -> None:
    path = folder / run / "v" / "cache" / "lastfailed"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dict.fromkeys(tests, True)))


def test_failures_of_all_runs_are_found(tmp_path: Path) -> None:
    _cache(tmp_path, "mesh", "tests/b.py::test_two")
    _cache(tmp_path, "unit", "tests/a.py::test_one[x]", "tests/b.py::test_two")
    assert failed_tests(tmp_path) == ["tests/a.py::test_one[x]", "tests/b.py::test_two"]


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
    _cache(tmp_path, "unit", f"{test}::test_it")
    assert main(str(tmp_path)) == status
    assert ("UNSTEADY" in capfd.readouterr().out) == (status == 0)
