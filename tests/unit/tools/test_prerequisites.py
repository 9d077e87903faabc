"""What is missing on a machine is one sentence that names the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import prerequisites
import pytest

TOOLS = Path(prerequisites.__file__).parent


def check(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / "set_up.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_a_machine_without_a_compiler_is_told_its_package(tmp_path: Path) -> None:
    done = check(PATH=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "needs a C++20 compiler: install g++ (Debian: apt-get), gcc-c++ (Fedora: dnf) or gcc (Arch: pacman)" in line


def test_a_compiler_that_does_not_know_the_language_is_none(tmp_path: Path) -> None:
    old = tmp_path / "c++"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert "needs a C++20 compiler" in check(PATH=str(tmp_path)).stderr


@pytest.mark.parametrize(
    ("check", "packages"),
    [("_has_header", ["-dev", "python3-devel", "Python.h"]), ("_has_venv", ["-venv", "module venv"])],
)
def test_what_python_lacks_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, check: str, packages: list[str]
) -> None:
    what = next(name for name, there in prerequisites._CHECKS.items() if there.__name__ == check)
    monkeypatch.setitem(prerequisites._CHECKS, what, lambda: False)
    (sentence,) = prerequisites.missing()
    assert all(word in sentence for word in packages)


def test_headers_and_venv_are_looked_for_where_python_has_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert prerequisites._has_header()
    assert prerequisites._has_venv()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ensurepip" else object())
    assert not prerequisites._has_header()
    assert not prerequisites._has_venv()


def test_an_old_python_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 9, 2))
    (sentence,) = prerequisites.missing()
    assert "needs Python 3.11 or newer" in sentence
    assert "is 3.9.2" in sentence


def test_a_full_disk_is_said_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert prerequisites.no_space(tmp_path) is None or "GB" in str(prerequisites.no_space(tmp_path))
    monkeypatch.setattr(prerequisites, "FREE_BYTES", 10**18)
    assert "set-up needs" in str(prerequisites.no_space(tmp_path))
