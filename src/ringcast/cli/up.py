"""`ringcast up`: a mesh of several daemons on this machine, to try things on without root or other machines.

Invariant: whatever ends it, no daemon and no file of it stays behind.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from ringcast.cli.output import Output, add_json
from ringcast.cli.units import count, positive
from ringcast.errors import BrokenError, DaemonUnavailable

HELP = "Run several nodes on this machine, joined to each other, until Ctrl-C."

_EPILOG = """\
Each node is a daemon of its own on 127.0.0.1. In another terminal, say which one a program belongs to by setting
RINGCAST_SOCKET as printed.

examples:
  ringcast up                        three nodes: node0, node1, node2
  ringcast up --nodes 5 --seconds 60 five of them, for a minute
"""

JOIN_S = 30.0
END_S = 5.0
_POLL_S = 0.02


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--nodes", type=count, default=3, metavar="N", help="how many (3)")
    parser.add_argument("--seconds", type=positive, metavar="S", help="end after so long")
    parser.add_argument("--prefix", default="node", metavar="NAME", help="names begin with this (node)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    output = Output(args.json)
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        with ExitStack() as stack:
            nodes = _start(args, output, stack)
            if args.json:
                output.document({"nodes": nodes})
            else:
                for node in nodes:
                    output.line(f"# {node['name']} at {node['address']}, process {node['pid']}")
                    output.line(f"export RINGCAST_SOCKET={shlex.quote(node['socket'])}")
                output.note("Ctrl-C ends them all" if args.seconds is None else f"they end in {args.seconds:g} s")
            _rest(args.seconds)
    except KeyboardInterrupt:
        pass  # it is how this is meant to end
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _start(args: argparse.Namespace, output: Output, stack: ExitStack) -> list[dict[str, Any]]:
    """Raises BrokenError when a daemon ends at once or the nodes do not find each other."""
    import ringcast

    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ringcast-up-")))
    addresses = _free_addresses(args.nodes)
    nodes: list[dict[str, Any]] = []
    daemons: list[subprocess.Popen[bytes]] = []
    stack.callback(_end, daemons)
    for number, address in enumerate(addresses):
        name, path = f"{args.prefix}{number}", place / f"{number}.sock"
        peers = [word for peer in addresses[:number] for word in ("--peer", peer)]
        command = [sys.executable, "-m", "ringcast", "daemon", "--socket", str(path), "--name", name]
        # A group of its own: Ctrl-C is for us, and we end them in order.
        daemons.append(
            subprocess.Popen(
                [*command, "--listen", address, "--no-scout", *peers], stdin=subprocess.DEVNULL, start_new_session=True
            )
        )
        nodes.append({"name": name, "address": address, "socket": str(path), "pid": daemons[-1].pid})
    deadline = time.monotonic() + JOIN_S
    for node, daemon in zip(nodes, daemons, strict=True):
        while True:
            if daemon.poll() is not None:
                raise BrokenError(f"the daemon of {node['name']} ended at once; what it said stands above")
            if time.monotonic() > deadline:
                raise BrokenError(f"{node['name']} did not find the other nodes within {JOIN_S:.0f} s")
            output.progress(f"waiting for {node['name']}")
            try:
                with ringcast.connect(node["socket"], start=False, program="ringcast up") as session:
                    if sum(row.state == "here" for row in session.nodes()) == args.nodes:
                        break
            except DaemonUnavailable:
                pass
            time.sleep(_POLL_S)
    stack.callback(lambda: output.note("ended") if output.terminal else None)
    return nodes


def _rest(seconds: float | None) -> None:
    if seconds is None:
        while True:
            signal.pause()
    time.sleep(seconds)


def _end(daemons: list[subprocess.Popen[bytes]]) -> None:
    for daemon in daemons:
        daemon.terminate()
    for daemon in daemons:
        try:
            daemon.wait(END_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _free_addresses(number: int) -> list[str]:
    """Held together while they are chosen, so that no two are the same."""
    with ExitStack() as stack:
        found = []
        for _ in range(number):
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind(("127.0.0.1", 0))
            found.append(f"127.0.0.1:{probe.getsockname()[1]}")
        return found


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
