"""`ringcast nodes`: who is in the mesh, as this node's daemon knows it."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_access, connect
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import show_ns, show_signed_ns
from ringcast.cli.parts.watching import add_watch, watch

if TYPE_CHECKING:
    from ringcast.cli.parts.watching import Sheet
    from ringcast.control.status import ClockStatus, NodeStatus

HELP = "List the nodes that this one knows: whether they are here, and where they are reached."

EPILOG = """\
A node is 'here', 'suspect' while it does not answer, 'gone', or in 'conflict' when another node has the same name.
Nodes need not be linked to each other directly to exchange messages.

Clock is how far a node's clock is ahead of this node's, bound how far that may be off, and drift by how much it grows.
Times of messages are translated by it. 'same' is the very clock of this node, 'common' what clock.source says is one.

examples:
  ringcast nodes                 all nodes
  ringcast nodes --watch --json  one object per line, every second
"""

_HEADS = ("node", "state", "link", "address", "clock", "bound", "drift")


def configure(parser: argparse.ArgumentParser) -> None:
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


def _clock(clock: ClockStatus | None) -> tuple[str, str, str]:
    if clock is None or clock.source in ("own", "unknown"):
        return ("-", "-", "-")
    if clock.source == "same":
        return ("same", "-", "-")
    if clock.source == "common":
        return ("disagrees" if clock.violation else "common", show_ns(clock.bound_ns), "-")
    return (show_signed_ns(clock.offset_ns), show_ns(clock.bound_ns), f"{clock.drift * 1e6:+.2f} us/s")


def _sheet(rows: list[NodeStatus]) -> Sheet:
    cells = [
        [
            row.name, row.state, "this node" if row.me else "yes" if row.linked else "no",
            ", ".join(row.control) or "-", *_clock(row.clock),
        ]
        for row in rows
    ]  # fmt: skip
    return "", _HEADS, cells
