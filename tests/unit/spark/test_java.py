"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ringcast.errors import NoJava
from ringcast.spark.java import java_home


def fake(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\nfor w do printf '%s\\n' \"$w\"; done\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_the_one_that_is_there(tmp_path: Path) -> None:
    fake(tmp_path, "17.0.9")
    assert java_home({"JAVA_HOME": str(tmp_path), "PATH": ""}) == str(tmp_path)
    assert java_home({"PATH": str(tmp_path / "bin")}) is None


def test_an_old_one_gives_way_to_the_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake(tmp_path / "old", "1.8.0_392")
    new = fake(tmp_path / "new", "25.0.1")
    home = java_home({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}, lambda: new)
    assert home is not None
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "-cp", "x;y"]
    done = subprocess.run([Path(home, "bin", "java"), *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Xmx1g", "a b", "-cp", "x;y"]


def test_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match="there is none; install one"):
        java_home({"PATH": str(tmp_path)}, lambda: None)
    fake(tmp_path, "11.0.2")
    with pytest.raises(NoJava, match="there is version 11 ") as caught:
        java_home({"PATH": str(tmp_path / "bin")}, lambda: None)
    assert "\n" not in str(caught.value)
