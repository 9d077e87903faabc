"""What was not tested is said, and with CI=true it is a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import system_tools
from untested import main, summary

TESTS = Path(__file__).resolve().parents[2]


def run_pytest(folder: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(source)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "skips",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
        "test_it.py",
    ]
    own = {key: value for key, value in os.environ.items() if key not in ("CI", "RINGCAST_SKIPPED")}
    own |= {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=own)


ONE_SKIPPED = "import pytest\ndef test_a(): pytest.skip('no moon')\ndef test_b(): pass\n"


def test_a_skip_is_said_at_the_end(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, ONE_SKIPPED)
    assert done.returncode == 0, done.stdout
    assert "not tested: 1, for no moon" in done.stdout


@pytest.mark.parametrize(
    "source",
    [
        ONE_SKIPPED,
        "import pytest\npytestmark = pytest.mark.skipif(True, reason='no moon')\ndef test_a(): pass\n",
        "import pytest\npytest.skip('no moon', allow_module_level=True)\n",
        "import pytest\npytest.importorskip('no_moon', reason='no moon')\n",
        "import pytest\n@pytest.fixture\ndef moon(): pytest.skip('no moon')\ndef test_a(moon): pass\n",
    ],
    ids=["in a test", "mark", "module", "import", "fixture"],
)
def test_with_ci_any_skip_is_a_failure(tmp_path: Path, source: str) -> None:
    done = run_pytest(tmp_path, source, CI="true")
    assert done.returncode != 0, done.stdout
    assert "CI=true forbids: no moon" in done.stdout


def test_what_nobody_can_install_is_expected_even_there(tmp_path: Path) -> None:
    source = "import pytest\ndef test_a(): pytest.skip('this kernel has no IPv6')\ndef test_b(): pass\n"
    assert run_pytest(tmp_path, source, CI="true").returncode == 0


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    source = "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n"
    assert run_pytest(tmp_path, source, CI="true").returncode == 0


def test_runs_beside_each_other_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        run_pytest(folder, ONE_SKIPPED, RINGCAST_SKIPPED=str(tmp_path / "skipped" / str(number)))
    rows = [json.loads(path.read_text()) for path in (tmp_path / "skipped").iterdir()]
    assert [row["reason"] for row in rows] == ["no moon"] * 2
    assert main(str(tmp_path / "skipped")) == 0
    assert "no moon" in capsys.readouterr().out
    assert main(str(tmp_path / "nothing")) == 0
    assert capsys.readouterr().out == "tested: every situation\n"


def test_the_summary_names_files_and_the_reason_with_most_tests_first() -> None:
    lines = summary([("no moon", ["tests/a.py::one"]), ("no sun", ["tests/b.py::one", "tests/b.py::two"])])
    assert lines[0] == "not tested here: 3 tests"
    assert lines[1] == "  2 tests (b): no sun"
    assert lines[2] == "  1 test (a): no moon"
    assert "as root on Debian" in lines[-1]
    assert summary([]) == []


def test_programs_that_are_missing_are_named_by_package_once(tmp_path: Path) -> None:
    assert system_tools.missing(str(tmp_path)) == list(system_tools.PROGRAMS)
    assert system_tools.packages(["ip", "tc", "iptables", "ip6tables", "strace"], 0) == "iproute2 iptables strace"


@pytest.mark.parametrize("environment", [{"SYSTEM": "no"}, {"SYSTEM": "yes", "uid": "1000"}])
def test_nothing_is_installed_without_permission(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environment: dict[str, str]
) -> None:
    monkeypatch.setenv("SYSTEM", environment["SYSTEM"])
    monkeypatch.setattr("os.geteuid", lambda: int(environment.get("uid", "0")))
    monkeypatch.setattr(system_tools, "missing", lambda: ["strace"])
    monkeypatch.setattr(system_tools, "_install", lambda names: pytest.fail(f"{names} were installed"))
    assert system_tools.main() == 0
    assert "apt-get install strace (Debian" in capsys.readouterr().out
