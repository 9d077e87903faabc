"""`ringcast serve`: answer what is asked on a tag with a command's output."""

from __future__ import annotations

import argparse
import shlex
import subprocess
from typing import Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output
from ringcast.cli.parts.units import positive
from ringcast.cli.parts.values import parse, show
from ringcast.cli.program import Misuse
from ringcast.model.tag import check_name

HELP = "Serve a tag: run a command for each question, and answer with what it prints."

EPILOG = """\
The question is the command's standard input; what it prints, without the last line's end, is the answer: text on a tag
of codec bytes, JSON on the others. A command that fails, or takes too long, is an error where it was asked.

examples:
  ringcast serve host/load --exec uptime
  ringcast serve lab/upper --exec 'tr a-z A-Z'
  ringcast serve lab/sum --codec json --exec 'jq add'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tag", metavar="TAG", help="the tag to serve; created when nobody has")
    parser.add_argument("--exec", dest="command", required=True, metavar="COMMAND", help="what answers")
    parser.add_argument(
        "--limit", type=positive, default=10.0, metavar="S", help="end it after S seconds (default: 10)"
    )
    parser.add_argument("--codec", help="bytes, json, msgpack (default: the tag's own; bytes for a new tag)")
    add_access(parser)


def run(args: argparse.Namespace) -> int:
    check_name(args.tag)
    try:
        command = shlex.split(args.command)
    except ValueError as exc:
        raise Misuse(f"--exec {args.command!r} cannot be read: {exc}") from exc
    if not command:
        raise Misuse("--exec is empty; give a command, as --exec 'tr a-z A-Z'")
    output = Output(False)
    with connect(args, "serve") as session:
        tag = session.tag(args.tag, **({} if args.codec is None else {"codec": args.codec}))
        codec = tag.attributes.codec

        def answer(question: Any) -> Any:
            asked = question if isinstance(question, bytes) else show(question, limit=1 << 20).encode()
            return parse(_printed(command, asked, args.limit), codec)

        with tag.serve(answer, on_error=lambda error, _: output.note(str(error))) as server:
            output.note(f"serving {args.tag} with {command[0]}; Ctrl-C ends it")
            server.wait()
    return 0


def _printed(command: list[str], asked: bytes, limit_s: float) -> str:
    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=limit_s, check=False)
    except FileNotFoundError as exc:
        raise RuntimeError(f"there is no program {command[0]!r}") from exc
    except subprocess.TimeoutExpired as exc:
        raise TimeoutError(f"{command[0]} took longer than {limit_s:g} s") from exc
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        raise RuntimeError(f"{command[0]} ended with status {done.returncode}{': ' + said if said else ''}")
    return done.stdout.removesuffix(b"\n").decode(errors="surrogateescape")
