"""`ringcast watch`: print nodes, publishers and subscribers as they come and go."""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.model.tag import check_pattern

if TYPE_CHECKING:
    from ringcast.model.identity import Presence

HELP = "Print which nodes, publishers and subscribers are there, and then each that comes or goes, until Ctrl-C."

EPILOG = """\
Nodes are always shown; PATTERN chooses publishers by tag, and subscribers by the tags that they could receive.

examples:
  ringcast watch                  everything
  ringcast watch lab/temp --now   who publishes and receives it now
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", default="**", metavar="PATTERN", help="a tag, or 'lab/*/temp', 'lab/**'")
    parser.add_argument("--now", action="store_true", help="print what is there now, and exit")
    add_access(parser)
    add_json(parser, "one JSON object per line")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with connect(args, "watch") as session, session.watch(check_pattern(args.pattern)) as watch:
        for presence in watch.present if args.now else watch:
            if args.json:
                output.record(_record(presence))
            else:
                output.line(f"{datetime.now():%H:%M:%S.%f} {presence}{_program(presence)}")
    return 0


def _record(presence: Presence) -> dict[str, Any]:
    return {
        "time_ns": time.time_ns(), "kind": presence.kind, "came": presence.came, "node": presence.node,
        "topic": presence.topic, "info": presence.info,
    }  # fmt: skip


def _program(presence: Presence) -> str:
    return f" ({presence.info.program})" if presence.info is not None and presence.info.program else ""
