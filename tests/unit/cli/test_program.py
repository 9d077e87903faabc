from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

import ringcast.cli
from ringcast.cli import main
from ringcast.cli.parts.completion.grammar import grammar
from ringcast.cli.program import GROUPS, VERBS, Misuse, module_of, parser_of
from ringcast.cli.run import doctor
from ringcast.errors import RingcastError


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_keeps_the_contract_and_teaches(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = module_of(verb)
    assert module.HELP
    assert main([verb, "--help"]) == 0
    told = capsys.readouterr().out
    assert module.HELP.split()[0] in told
    assert "--debug" in told


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, "--help"])
    assert f"examples:\n  ringcast {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS.keys() - {"daemon", "serve", "service", "completion"})
def test_every_verb_that_reports_has_json(verb: str) -> None:
    """One that runs until it is stopped does not report, nor does one that prints a file for another program."""
    levels = grammar({verb: ""}, parser_of)[1:]
    actions = [level for level in levels if not any(other.path.startswith(f"{level.path} ") for other in levels)]
    missing = [level.path for level in actions if not any("--json" in option.names for option in level.options)]
    assert missing in ([], ["lab net run"])  # a command on a node prints what it likes


@pytest.mark.parametrize("verb", ["tags", "nodes", "channels", "watch", "pub", "sub", "pull", "hz", "bw", "delay",
                                  "set", "delete", "record", "replay", "status", "stop"])  # fmt: skip
def test_every_verb_that_talks_to_a_daemon_says_to_which(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([verb, "--help"])
    assert "--socket" in capsys.readouterr().out


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {verb} " in told and line in told for verb, line in VERBS.items())


def test_help_imports_no_verb() -> None:
    code = "import sys; from ringcast.cli import main; main(['--help']); print([m for m in sys.modules if 'cli.' in m])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "['ringcast.cli.program']"


def test_every_file_of_a_verb_is_in_the_table() -> None:
    folder = Path(ringcast.cli.__file__).parent
    for group, (_, verbs) in GROUPS.items():
        assert {path.stem for path in (folder / group).glob("*.py")} - {"__init__"} == verbs.keys()


def test_no_verb_at_all_is_a_misuse_that_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "run a node:" in capsys.readouterr().err


def test_a_mistyped_verb_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docter"]) == 2
    assert capsys.readouterr().err == "ringcast: there is no verb 'docter'; did you mean 'doctor'?\n"


@pytest.mark.parametrize(
    ("error", "code"), [(RingcastError("it broke"), 1), (TimeoutError("too late"), 1), (Misuse("not so"), 2)]
)
def test_errors_are_one_sentence(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(doctor, "run", fail)
    assert main(["doctor"]) == code
    assert capsys.readouterr().err == f"ringcast: {error}\n"
    assert main(["doctor", "--debug"]) == code
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ringcast ")
