"""What parsers understand, as levels; and words that shells would trip over."""

from __future__ import annotations

import argparse

from ringcast.cli.parts.completion.grammar import Level, Option, grammar
from ringcast.cli.parts.completion.shells import SHELLS


def parser(verb: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    made.add_argument("--level", choices=("low", "high"), help='50%% or "more" of it\'s: $HOME')
    made.add_argument("--file", metavar="FILE")
    made.add_argument("--watch", nargs="?", metavar="S")
    made.add_argument("--secret", help=argparse.SUPPRESS)
    actions = made.add_subparsers(dest="action")
    actions.add_parser("go", add_help=False, help="begin").add_argument("place", metavar="DIR")
    return made


def test_levels_follow_the_parsers() -> None:
    _, verb, action = grammar({"run": "do it"}, parser)
    assert verb == Level(
        "run",
        {"go": "begin"},
        (
            Option(("--level",), '50% or "more" of it\'s: $HOME', True, ("low", "high")),
            Option(("--file",), "", True, (), True),
            Option(("--watch",), "", False),
        ),
    )
    assert action == Level("run go", {}, (), files=True)


def test_every_shell_gets_every_level() -> None:
    levels = grammar({"run": "do it"}, parser)
    for write in SHELLS.values():
        text = write(levels)
        assert "run go" in text
        assert "secret" not in text
