"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ringcast.errors import NoJava
from ringcast.spark.jvm.java import Java, find_java, java_home


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


@pytest.mark.parametrize("prefix_is_writable", [True, False])
def test_a_read_only_home_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix_is_writable: bool
) -> None:
    blocked = tmp_path / "file"  # nobody, root included, can make a directory below a file
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("sys.prefix", str(tmp_path / "prefix" if prefix_is_writable else blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = java_home({"PATH": ""}, lambda: fake(tmp_path / "new", "25.0.1"))
    assert home is not None
    assert Path(home).is_relative_to(tmp_path / "prefix") == prefix_is_writable
    assert subprocess.run([Path(home, "bin", "java"), "x"], capture_output=True, check=True).stdout == b"x\n"


def test_looking_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new = fake(tmp_path / "new", "25.0.1")
    assert find_java({"PATH": ""}, lambda: new) == Java(str(new), 25, bundled=True)
    assert not (tmp_path / "cache").exists()


def test_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoJava, match="there is none; install one"):
        java_home({"PATH": str(tmp_path)}, lambda: None)
    fake(tmp_path, "11.0.2")
    with pytest.raises(NoJava, match="there is version 11 ") as caught:
        java_home({"PATH": str(tmp_path / "bin")}, lambda: None)
    assert "\n" not in str(caught.value)
