"""`ringcast up`: a mesh of several daemons on this machine, to try things on without root or other machines.

Invariant: whatever ends it, no daemon and no file of it stays behind.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import tempfile
import time
from pathlib import Path

from ringcast.cli.parts.ending import terminable
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.parts.units import count, positive
from ringcast.lab.testbed.local_mesh import local_mesh

HELP = "Run several nodes on this machine, joined to each other, until Ctrl-C."

EPILOG = """\
Each node is a daemon of its own on 127.0.0.1. In another terminal, set RINGCAST_SOCKET as printed, and programs started
there use that node.

examples:
  ringcast up                        three nodes: node0, node1, node2
  ringcast up --nodes 5 --seconds 60 five of them, for a minute
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=count, default=3, metavar="N", help="how many nodes (default: 3)")
    parser.add_argument("--seconds", type=positive, metavar="S", help="end after S seconds")
    parser.add_argument("--prefix", default="node", metavar="NAME", help="what the names begin with (default: node)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    names = [f"{args.prefix}{number}" for number in range(args.nodes)]
    try:
        with (
            terminable(),
            tempfile.TemporaryDirectory(prefix="ringcast-up-") as place,
            local_mesh(names, Path(place), output.progress) as nodes,
        ):
            if args.json:
                output.document({"nodes": [node._asdict() for node in nodes]})
            else:
                for node in nodes:
                    output.line(f"# {node.name} at {node.address}, process {node.pid}")
                    output.line(f"export RINGCAST_SOCKET={shlex.quote(node.socket)}")
                output.note("Ctrl-C ends them all" if args.seconds is None else f"they end in {args.seconds:g} s")
            try:
                _rest(args.seconds)
            finally:
                if output.terminal:
                    output.note("ended")
    except KeyboardInterrupt:
        pass  # it is how this is meant to end
    return 0


def _rest(seconds: float | None) -> None:
    if seconds is None:
        while True:
            signal.pause()
    time.sleep(seconds)
