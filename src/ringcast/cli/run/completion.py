"""`ringcast completion`: print the script by which a shell completes verbs, options and their values."""

from __future__ import annotations

import argparse

from ringcast.cli.parts.completion.grammar import grammar
from ringcast.cli.parts.completion.shells import SHELLS
from ringcast.cli.parts.output import Output
from ringcast.cli.program import VERBS, parser_of

HELP = "Print a script by which bash, zsh or fish completes verbs, options and their values."

EPILOG = """\
The script knows the verbs of this version: print it again after an upgrade.

examples:
  ringcast completion bash > ~/.local/share/bash-completion/completions/ringcast
  ringcast completion zsh > ~/.zfunc/_ringcast        with 'fpath+=~/.zfunc' before compinit in ~/.zshrc
  ringcast completion fish > ~/.config/fish/completions/ringcast.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=sorted(SHELLS), help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    levels = grammar(VERBS, parser_of)
    Output(False).line(SHELLS[args.shell](levels).rstrip("\n"))
    return 0
