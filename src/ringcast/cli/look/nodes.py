"""`ringcast nodes`: who is in the mesh, as this node's daemon knows it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.watching import add_watch, watch

if TYPE_CHECKING:
    from ringcast.cli.parts.watching import Sheet
    from ringcast.control.status import NodeStatus

HELP = "List the nodes that this one knows: whether they are here, and where they are reached."

_EPILOG = """\
A node is 'here', 'suspect' while it does not answer, 'gone', or in 'conflict' when another node has the same name.
Nodes need not be linked to each other directly to exchange messages.

examples:
  ringcast nodes                 all nodes
  ringcast nodes --watch --json  one object per line, every second
"""

_HEADS = ("node", "state", "link", "address")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_watch(parser)
    add_access(parser)
    add_json(parser, "one JSON document (with --watch: one object per line)")


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with connect(args, "nodes") as session:
        if args.watch is not None:
            watch(
                output, args.watch, session.nodes, lambda rows: [_sheet(rows)],
                lambda rows: {"time_ns": time.time_ns(), "nodes": rows},
            )  # fmt: skip
        rows = session.nodes()
        if args.json:
            output.document(rows)
            return 0
        title, heads, cells = _sheet(rows)
        output.table(heads, cells, title)
        for address, reason in sorted(session.status().refusals.items()):
            output.note(f"{address} is not of this mesh: {reason}")
        if all(row.me and not row.control for row in rows):
            output.note("this daemon has no network; 'ringcast daemon --listen HOST:PORT' joins one")
    return 0


def _sheet(rows: list[NodeStatus]) -> Sheet:
    cells = [
        [
            row.name, row.state, "this node" if row.me else "yes" if row.linked else "no",
            ", ".join(row.control) or "-",
        ]
        for row in rows
    ]  # fmt: skip
    return "", _HEADS, cells
