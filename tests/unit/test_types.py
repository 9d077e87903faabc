"""What a type checker knows of a program that uses Ringcast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ringcast

ROOT = Path(__file__).resolve().parents[2]


def test_programs_are_typed_from_their_schemas() -> None:
    """Nothing that `program.py` touches is of type Any: a comment in it says so to mypy."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--cache-dir", str(ROOT / "build" / "mypy"), "tests/typing/program.py", "tests/typing/arrays.py"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("kind", "plumbing"),
    [
        (ringcast.Publisher, ("attach_fanout", "bell_fd", "fail", "ring_fd", "set_stage", "stage")),
        (ringcast.Subscriber, ("attach", "detach", "fail", "poke", "rescale", "use_mailbox")),
        (ringcast.History, ("attach", "detach", "rearranged")),
    ],
)  # fmt: skip
def test_native_plumbing_is_private(kind: type, plumbing: tuple[str, ...]) -> None:
    assert [name for name in plumbing if hasattr(kind, name)] == []


def test_types_are_there_when_a_program_runs() -> None:
    for kind in (ringcast.Message, ringcast.Tag, ringcast.Publisher, ringcast.Subscriber, ringcast.History):
        assert str(kind[int])  # type: ignore[index]
