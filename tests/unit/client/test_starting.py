from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ringcast.client import starting
from ringcast.client.starting import ensure_running
from ringcast.daemon.clients.claim import Claim
from ringcast.errors import DaemonUnavailable


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "d.sock")


def test_a_running_daemon_is_left_alone(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_spawn", lambda *_: pytest.fail("started another"))
    claim = Claim(path)
    ensure_running(path)
    claim.close()


def test_a_python_that_does_not_know_itself(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DaemonUnavailable, match="own executable"):
        ensure_running(path)


def test_a_relative_python_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"src{os.pathsep}{os.pathsep}/x")
    assert starting._environment()["PYTHONPATH"] == f"{tmp_path / 'src'}{os.pathsep}/x"
