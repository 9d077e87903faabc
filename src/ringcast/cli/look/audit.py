"""`ringcast audit`: what a daemon refused, and to whom."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.daemon.table.system_tags import audit_tag
from ringcast.errors import HistoryError

HELP = "Show what the daemon refused to programs, other nodes and strangers, and why."

EPILOG = """\
The newest refusals are on the tag @ringcast/NODE/audit, older ones in the file that 'ringcast config show' names
(audit). Of many alike in a minute a few are written down, and then how many more there were.

examples:
  ringcast audit                     what this node refused of late
  ringcast audit --follow            and what it refuses from now on
  ringcast audit --node edge1 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", metavar="NAME", help="of this node (default: the one of this daemon)")
    parser.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    add_access(parser)
    add_json(parser, "one JSON object per line")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with connect(args, "audit") as session:
        tag: Any = session.tag(audit_tag(args.node or session.status().node))
        if args.follow:
            with tag.subscribe(start="earliest") as refusals:
                for message in refusals:
                    _show(output, message.data)
        try:
            with tag.history(at="publisher") as history:
                messages = history.between(0, 2**63 - 1)
        except HistoryError:
            messages = []
        for message in messages:
            _show(output, message.data)
        if not messages and not args.json:
            output.note("nothing was refused since the daemon was started")
    return 0


def _show(output: Output, refusal: dict[str, Any]) -> None:
    if output.json:
        output.record(refusal)
        return
    when = datetime.fromtimestamp(refusal["at_ns"] / 1e9, UTC)
    process = f" (process {refusal['pid']})" if refusal["pid"] else ""
    more = f", and {refusal['left_out']} more like it" if refusal["left_out"] else ""
    what = f" {refusal['what']}" if refusal["what"] else ""
    output.line(
        f"{when:%Y-%m-%d %H:%M:%S} {refusal['who']}{process}: {refusal['action']}{what}: {refusal['reason']}{more}"
    )
