"""A person presses Tab: real shells, given what `ringcast completion` prints."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringcast.cli.program import VERBS

ASKED = [
    (["dae"], {"daemon"}, {"doctor"}),
    (["daemon", "--m"], {"--mesh", "--metrics"}, {"--name"}),
    (["daemon", "--log", ""], {"text", "json"}, {"--mesh"}),
    (["config", ""], {"show", "check"}, {"daemon"}),
    (["config", "show", "--no-s"], {"--no-scout"}, {"--no-config"}),
    (["completion", "z"], {"zsh"}, {"bash"}),
    (["config", "check", "here"], {"here.toml"}, {"show"}),
]
COMPLETE = {
    "bash": """
        source {script}
        COMP_WORDS=(ringcast {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _ringcast; printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # What zsh offers can only be asked for inside its line editor; here its own functions print what they are given.
    "zsh": """
        compdef() {{ }}
        _describe() {{ print -l -- ${{(P)2}} }}
        compadd() {{ shift; print -l -- "$@" }}
        _files() {{ print -l -- *(N) }}
        source {script}
        words=(ringcast {words}); CURRENT=${{#words}}
        _ringcast | sed 's/:.*//' | grep -e "^${{words[-1]}}"
    """,
    "fish": """
        source {script}
        complete -C "ringcast {words}" | cut -f1
    """,
}
FLAGS = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion")
    (place / "here.toml").touch()
    for shell in COMPLETE:
        made = subprocess.run(
            [sys.executable, "-m", "ringcast", "completion", shell], capture_output=True, text=True, timeout=60
        )
        assert made.returncode == 0, made.stderr
        (place / shell).write_text(made.stdout)
    return place


@pytest.mark.parametrize("shell", COMPLETE)
@pytest.mark.parametrize(("words", "offered", "not_offered"), ASKED, ids=lambda value: " ".join(value))
def test_tab(scripts: Path, shell: str, words: list[str], offered: set[str], not_offered: set[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed (Debian: apt-get install {shell})")
    typed = " ".join(word or ("''" if shell != "fish" else "") for word in words)
    done = subprocess.run(
        [shell, *FLAGS[shell], "-c", COMPLETE[shell].format(script=scripts / shell, words=typed)],
        capture_output=True, text=True, timeout=60, cwd=scripts,
    )  # fmt: skip
    found = set(done.stdout.split("\n"))
    assert done.stderr == ""
    assert offered <= found, found
    assert not found & not_offered


def test_every_verb_is_there(scripts: Path) -> None:
    for shell in COMPLETE:
        text = (scripts / shell).read_text()
        assert [verb for verb in VERBS if verb not in text] == []
