"""What the command line understands, as values that a shell's completion can be written from. Pure.

Taken from the parsers themselves, so that it cannot differ from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

_FILES = ("FILE", "PATH", "DIR", "OUT", "SOCKET")


class Option(NamedTuple):
    names: tuple[str, ...]
    help: str
    takes_value: bool
    """Not one that may do without."""
    choices: tuple[str, ...] = ()
    files: bool = False


class Level(NamedTuple):
    """What may come after the words of `path`: verbs or actions, options, and values without a name."""

    path: str
    """'' after the program, 'daemon' after a verb, 'config show' after a verb and its action."""
    words: dict[str, str]
    """{word: help}"""
    options: tuple[Option, ...]
    files: bool = False


def grammar(verbs: Mapping[str, str], parser_of: Callable[[str], argparse.ArgumentParser]) -> list[Level]:
    top = Level(
        "", dict(verbs), (Option(("-h", "--help"), "", False), Option(("--version",), "show the version", False))
    )
    found = [top]
    for verb in verbs:
        found += _levels(verb, parser_of(verb))
    return found


def _levels(path: str, parser: argparse.ArgumentParser) -> list[Level]:
    words: dict[str, str] = {}
    options: list[Option] = []
    files = False
    inner: list[Level] = []
    for action in parser._actions:  # argparse has no other way to ask what a parser understands
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, sub in action.choices.items():
                words[name] = said.get(name, "")
                inner += _levels(f"{path} {name}", sub)
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            options.append(_option(action))
        else:
            words.update(dict.fromkeys(map(str, action.choices or ()), ""))
            files = files or _is_file(action)
    return [Level(path, words, tuple(options), files), *inner]


def _option(action: argparse.Action) -> Option:
    choices = tuple(map(str, action.choices or ()))
    return Option(
        tuple(action.option_strings), (action.help or "").replace("%%", "%"), action.nargs not in (0, "?", "*"),
        choices, _is_file(action),
    )  # fmt: skip


def _is_file(action: argparse.Action) -> bool:
    return isinstance(action.metavar, str) and action.metavar in _FILES
