"""`ringcast status`: is this node's daemon up, and what does it hold."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from ringcast.cli.parts.access import add_socket
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import show_bytes, show_ns
from ringcast.cli.program import FAILED
from ringcast.errors import DaemonUnavailable

if TYPE_CHECKING:
    from ringcast.control.answers import Status
    from ringcast.control.status import NodeStatus

HELP = "Show whether this node's daemon is up: its process, node and mesh, other nodes, memory, configuration."

EPILOG = """\
The exit code is 0 when a daemon answers, else 1. This verb never starts one.

examples:
  ringcast status
  ringcast status --json | jq .used_bytes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_socket(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    import ringcast

    output = Output(args.json)
    try:
        with ringcast.connect(args.socket, start=False, program="ringcast status") as session:
            status, nodes, path = session.status(), session.nodes(), session.socket_path
    except DaemonUnavailable as exc:
        if args.json:
            output.document({"up": False, "socket": exc.socket_path, "reason": exc.reason})
        else:
            output.line(f"no daemon answers at {exc.socket_path}: {exc.reason}")
        return FAILED
    if args.json:
        output.document({"up": True, "socket": path, **as_record(status), "nodes": nodes})
        return 0
    for head, value in lines(status, nodes, path):
        output.line(f"{head:8} {value}")
    for address, reason in sorted(status.refusals.items()):
        output.note(f"{address} is not joined: {reason}")
    for said in status.clocks:
        output.note(f"error: {said}")
    return 0


def as_record(status: Status) -> dict[str, object]:
    import msgspec

    record = msgspec.structs.asdict(status)
    del record["id"]
    return record | {"clients": status.clients - 1}


def lines(status: Status, nodes: list[NodeStatus], path: str) -> list[tuple[str, str]]:
    """The lines to print. This command itself is not counted among the clients."""
    states = Counter(node.state for node in nodes if not node.me)
    others = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    address = next((", ".join(node.control) for node in nodes if node.me and node.control), "no network")
    share = 100 * status.used_bytes / status.budget_bytes
    return [
        ("daemon", f"up {show_ns(status.uptime_s * 1e9)}, process {status.pid}, version {status.version}, {path}"),
        ("node", f"{status.node}, {address}"),
        ("mesh", f"{status.mesh or 'without a name'}; other nodes: {others}"),
        (
            "clients",
            f"{status.clients - 1}; {status.slow_clients} slow and {status.bad_messages} bad message(s) so far",
        ),
        ("rings", f"{status.rings} of {status.tags} tag(s), {status.lingering} left behind"),
        ("memory", f"{show_bytes(status.used_bytes)} of {show_bytes(status.budget_bytes)} for rings ({share:.0f} %)"),
        ("metrics", status.metrics or "not served"),
        ("config", status.config or "no file was read"),
    ]
