"""What set-up keeps and what it makes anew."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import set_up
from progress import Progress, package


def test_an_environment_without_pip_is_half_made(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    assert not set_up.usable(venv)
    assert not set_up.usable(tmp_path / "nowhere")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """An environment that has a pip, as far as anybody can see from outside."""
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "pip").mkdir()
    (site / "pip" / "__init__.py").write_text("")
    return venv


def test_a_whole_one_is_kept(whole: Path) -> None:
    assert set_up.usable(whole)
    assert set_up.usable(whole, exactly=True)


def test_a_copy_of_one_is_not_taken_for_it(whole: Path, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere" / ".venv"
    shutil.copytree(whole, copied, symlinks=True)
    assert not set_up.usable(copied)


def test_another_python_is_made_anew_only_when_asked_for(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.version_info", (3, 99, 0))
    assert set_up.usable(whole)
    assert not set_up.usable(whole, exactly=True)


@pytest.fixture
def tree(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree whose set-up is done."""
    for name, text in {"pyproject.toml": "", "constraints.txt": "", "CMakeLists.txt": "", "native/a.cpp": "a"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(set_up, "ROOT", tmp_path)
    monkeypatch.setattr(set_up, "VENV", whole)
    monkeypatch.setattr(set_up, "STATE", whole / "set-up.json")
    set_up._remember(**set_up._wanted())
    return tmp_path


def test_the_second_time_there_is_nothing_to_do(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "_run", lambda *_: pytest.fail("something was run"))
    monkeypatch.setattr(set_up.prerequisites, "missing", lambda: pytest.fail("the machine was looked at"))
    assert set_up.main([]) == 0


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ("native/a.cpp", {"project"}),
        ("native/new.hpp", {"project"}),
        ("constraints.txt", {"dependencies"}),
        ("pyproject.toml", {"dependencies", "project"}),
    ],
)
def test_a_change_repeats_the_steps_that_it_concerns(tree: Path, changed: str, again: set[str]) -> None:
    (tree / changed).write_text("changed")
    wanted, state = set_up._wanted(), set_up._state()
    assert {step for step in wanted if wanted[step] != state[step]} == again


def test_a_state_that_was_cut_off_is_none(tree: Path) -> None:
    set_up.STATE.write_text('{"dependencies": "12')
    assert set_up._state() == {}


def test_a_failure_shows_what_was_said_and_keeps_all_of_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "LOG", set_up.VENV / "set-up.log")
    with pytest.raises(set_up.Failed, match=r"ended with 3:\nno such package\n.*goes on where it stopped"):
        set_up._run([sys.executable, "-c", "print('no such package'); raise SystemExit(3)"])
    assert "no such package" in set_up.LOG.read_text()


def test_what_pip_says_becomes_a_line_per_large_package(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(2)
    progress.begin("libraries")
    for line in (
        "Collecting pyspark\n",
        "  Downloading https://files.example/packages/ab/pyspark-4.3.0.tar.gz (456.2 MB)\n",
        "  Downloading rich-15.0.0-py3-none-any.whl.metadata (18 kB)\n",
        "  Downloading rich-15.0.0-py3-none-any.whl (310 kB)\n",
        "  Building wheel for pyspark (pyproject.toml): started\n",
        "Installing collected packages: py4j, pyspark, rich\n",
    ):
        progress.hear(line)
    assert capsys.readouterr().out.splitlines() == [
        "set-up 1/2: libraries",
        "    pyspark-4.3.0.tar.gz, 456 MB",
        "    building pyspark",
        "    installing 3 packages",
    ]


def test_sizes_are_read_and_metadata_is_not_counted() -> None:
    assert package("Using cached numpy-2.4.6-cp311.whl (16.8 MB)") == ("numpy-2.4.6-cp311.whl", 16_800_000)
    assert package("Downloading numpy-2.4.6-cp311.whl.metadata (61 kB)") is None
    assert package("Requirement already satisfied: numpy") is None
