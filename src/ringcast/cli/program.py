"""The program `ringcast`: finds the verb, runs it, and turns what went wrong into one sentence and an exit code.

A verb is the module `ringcast.cli.<group>.<verb>` with `HELP`, `EPILOG`, `configure(parser)` and `run(args) -> int`;
only the one that was asked for is imported. Invariant: a user's mistake never shows a traceback (unless `--debug` asks
for it). Exit codes: 0 done, 1 failed, 2 wrong usage, 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType

from ringcast.errors import RingcastError

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

GROUPS: dict[str, tuple[str, dict[str, str]]] = {
    "run": ("run a node", {
        "demo": "see it work: a search and rescue on three nodes, or one node and no Spark",
        "daemon": "run this node's daemon (programs start one by themselves when none runs)",
        "conference": "talk, see, draw, write and play together in browsers",
        "up": "run several nodes on this machine, joined, until Ctrl-C",
        "agent": "watch deadlines, and make channels that miss them more urgent, until Ctrl-C",
        "doctor": "check what this machine allows, and how to get the rest",
        "status": "show whether the daemon is up, and what it holds",
        "stop": "end the daemon, and wait until it has",
        "gateway": "let web pages publish and subscribe, through WebSockets",
        "config": "show the daemon's settings and where each came from; check a file",
        "secure": "close a mesh to strangers: certificates for its nodes, invitations, revocation",
        "service": "print the systemd unit that runs the daemon",
        "completion": "print a script by which bash, zsh or fish completes verbs and options",
    }),
    "exchange": ("exchange messages", {
        "pub": "publish values, lines of standard input, or a counter",
        "sub": "subscribe, and print what arrives",
        "pull": "read from a tag's history: latest, n-th latest, by number, by time",
        "vars": "list, watch, get and set the variables behind a tag",
        "ask": "ask whoever serves a tag, and print the answer",
        "serve": "answer what is asked on a tag with a command's output",
    }),
    "look": ("look at a mesh", {
        "tags": "list tags, and who publishes and subscribes",
        "nodes": "list the nodes that this one knows",
        "channels": "list the streams between this node and others, with loss and what was dropped",
        "watch": "print nodes, publishers and subscribers as they come and go",
        "audit": "show what the daemon refused, and to whom",
        "hz": "measure how often publishers send, by their own count",
        "bw": "measure how many bytes publishers send, by their own count",
        "delay": "measure how long messages take from sending to receiving",
    }),
    "change": ("change a mesh", {
        "set": "choose where a tag's proxies sit and which transport carries it, while messages flow",
        "adapt": "have the mesh choose transports by a model that 'pipeline run train' wrote",
        "delete": "remove a tag and its history from every node",
    }),
    "record": ("record", {
        "record": "write what is sent on tags to disk: Parquet or MCAP",
        "replay": "publish a recording again, with the timing it had or another",
    }),
    "analyse": ("analyse", {
        "pipeline": "run the data pipelines on Spark; see what their tables hold and where it came from",
        "choose": "choose a transport for an environment, by a model that 'pipeline run train' wrote",
    }),
    "experiment": ("experiment", {
        "bench": "measure this library beside others",
        "place": "plan where proxies belong in a network, from a file",
        "admit": "say whether declared streams meet their deadlines, and where the time goes",
        "lab": "build a network of several nodes on this machine, and run the papers' experiments on it",
    }),
}  # fmt: skip
"""What `ringcast --help` lists, by folder: (heading, verbs). A table, so that listing imports no verb."""

VERBS = {verb: line for _, verbs in GROUPS.values() for verb, line in verbs.items()}
_FOLDER = {verb: folder for folder, (_, verbs) in GROUPS.items() for verb in verbs}

_EXAMPLES = """\
examples:
  ringcast demo                              everything at once, ends by itself
  ringcast sub 'lab/**'                      print all that is sent below lab/
  ringcast pub lab/temp 21.5                 send one message
  ringcast VERB --help                       what a verb does, with examples
"""


class Misuse(Exception):
    """The command line is used wrongly; the argument is the sentence to print."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ringcast` with these arguments (the process's own by default); returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Options before the verb take no value, so the first word that is not an option is the verb.
    at = next((i for i, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    debug = "--debug" in arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # other people's text on a terminal that cannot show it
    try:
        program = _program()
        program.parse_args(arguments[:at])
        if at == len(arguments):
            program.print_help(sys.stderr)
            return MISUSED
        return _run(arguments[at], arguments[at + 1 :])
    except SystemExit as exc:  # argparse has printed the reason
        return exc.code if isinstance(exc.code, int) else MISUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it. What is still buffered must not fail a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Misuse as exc:
        return _say(exc, MISUSED, debug)
    except (RingcastError, TimeoutError) as exc:
        return _say(exc, FAILED, debug)


def module_of(verb: str) -> ModuleType:
    """The module of a verb of `VERBS`."""
    return importlib.import_module(f"ringcast.cli.{_FOLDER[verb]}.{verb}")


def _run(verb: str, rest: list[str]) -> int:
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "'ringcast --help' lists all"
        raise Misuse(f"there is no verb {verb!r}; {hint}")
    module = module_of(verb)
    code: int = module.run(parser_of(verb).parse_args(rest))
    sys.stdout.flush()
    return code


def parser_of(verb: str) -> argparse.ArgumentParser:
    """What the verb understands."""
    module = module_of(verb)
    parser = argparse.ArgumentParser(
        prog=f"ringcast {verb}", description=module.HELP, epilog=module.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    module.configure(parser)
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    return parser


def _program() -> argparse.ArgumentParser:
    width = max(map(len, VERBS))
    listing = "\n".join(
        f"{heading}:\n" + "\n".join(f"  {verb:{width}}  {line}" for verb, line in verbs.items()) + "\n"
        for heading, verbs in GROUPS.values()
    )
    parser = argparse.ArgumentParser(
        prog="ringcast",
        usage="ringcast VERB [options]",
        description=f"Real-time push-pull messaging: publish, subscribe, and pull from history.\n\n{listing}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    return parser


class _Version(argparse.Action):
    """argparse's own would need the version, and with it importlib.metadata, on every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        print(f"ringcast {metadata.version('ringcast')}")
        parser.exit()


def _say(error: Exception, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    print(f"ringcast: {error}", file=sys.stderr)
    return code
