"""`ringcast lab net`: a network of several nodes on this machine, to run commands and experiments on.

`up` leaves a network behind on purpose, and `down` removes it. What any other command or a test builds lives as long as
its process; should that be killed, the next run removes the leftovers.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import select
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from ringcast.cli.parts import units
from ringcast.cli.parts.output import Output, add_json
from ringcast.cli.program import Misuse
from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.node import Node
from ringcast.lab.testbed.scripts import FAMILIES
from ringcast.lab.testbed.topology import Family, Topology, chain, star

HELP = "a network of several nodes on this machine (network namespaces; needs root)"

_EXAMPLES = """\
examples:
  ringcast lab net up --chain 3 --rate 10mbit --loss 1%   hosts a and c, router b between them
  ringcast lab net run a -- ping -c 3 10.0.1.2            a command on node a
  ringcast lab net check                                  does everyone reach everyone, and how fast
  ringcast lab net down

a topology file (--topology), in TOML; nodes that are not listed are hosts:
  rate = "100mbit"
  [nodes]
  r = "router"
  s = "switch"
  [[links]]
  between = ["a", "s"]
  [[links]]
  between = ["s", "r"]
  rate = "10mbit"
  loss = "every 100"
  [[links]]
  between = ["r", "b"]
  loss = "1%"
"""
_PINGS = 20
_PING_TIMEOUT_S = 0.1
_HOPELESS = 10
"""After this many losses without an answer, the node is unreachable."""
_SOCKET_FAMILY: dict[Family, int] = {4: socket.AF_INET, 6: socket.AF_INET6}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    up = actions.add_parser("up", help="build a network and leave it there")
    _add_topology(up)
    down = actions.add_parser("down", help="remove a network, and what dead processes left")
    down.add_argument("networks", nargs="*", metavar="ID", help="which ones (default: the only one)")
    down.add_argument("--all", action="store_true", help="all but those that a living process uses")
    listing = actions.add_parser("list", help="list networks")
    run = actions.add_parser("run", help="run a command on a node")
    run.add_argument("--net", metavar="ID", help="on this network (default: the only one)")
    run.add_argument("node", metavar="NODE")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD ...")
    check = actions.add_parser("check", help="measure delay, loss and throughput between all nodes")
    check.add_argument("--net", metavar="ID", help="of this network (default: the only one, or a new chain of 3)")
    check.add_argument("--seconds", type=units.positive, default=0.3, help="of throughput for each pair (default: 0.3)")
    _add_topology(check)

    for action in (up, down, listing, check):
        add_json(action)
    for action in (up, down, listing, run, check):
        # Accepted after the action too; `program.main` looks for it itself.
        action.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Raises LabError, TopologyError, Misuse."""
    code: int = {"up": _up, "down": _down, "list": _list, "run": _run, "check": _check}[args.action](args)
    return code


def _up(args: argparse.Namespace) -> int:
    output = Output(args.json)
    with Testbed(_topology(args) or chain(3, args.rate, args.loss), keep=True) as bed:
        facts = _facts(bed)
    if output.json:
        output.document({"network": bed.run_id, "nodes": facts})
        return 0
    rows = [[fact["node"], fact["kind"], *fact["addresses"], ", ".join(fact["links"])] for fact in facts]
    output.table(["node", "kind", *(f"IPv{family}" for family in FAMILIES), "linked to"], rows)
    first, last = bed.nodes[0], bed.nodes[-1]
    output.note(f"network {bed.run_id} is up. Try: ringcast lab net run {first.name} -- ping -c 3 {last.address()}")
    output.note("and at the end: ringcast lab net down")
    return 0


def _down(args: argparse.Namespace) -> int:
    output = Output(args.json)
    if args.all:
        removed = cleanup.sweep(kept=True)
    else:
        removed = cleanup.sweep()
        if args.networks or _usable() or not removed:
            for chosen in [_chosen(name) for name in args.networks] or [_chosen(None)]:
                if chosen.owner_lives and not chosen.kept:
                    raise Misuse(
                        f"network {chosen.run} is in use by process {chosen.pid}, which removes it when it ends"
                    )
                cleanup.remove(chosen.run)
                removed.append(chosen.run)
    if output.json:
        output.document({"removed": removed})
    else:
        output.line(f"removed: {', '.join(removed)}" if removed else "there was nothing to remove")
    return 0


def _list(args: argparse.Namespace) -> int:
    output = Output(args.json)
    rows: list[dict[str, Any]] = [
        {
            "network": record.run,
            "state": "left behind" if record.abandoned else "kept" if record.kept else f"of process {record.pid}",
            "links": [str(wire) for wire in record.topology.links],
        }
        for record in cleanup.records()
    ]
    if output.json:
        output.document(rows)
    elif rows:
        output.table(["network", "state", "links"], [[r["network"], r["state"], ", ".join(r["links"])] for r in rows])
    else:
        output.note("no network is up; 'ringcast lab net up' makes one")
    return 0


def _run(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise Misuse("which command? write it after --, as in: ringcast lab net run a -- ip address")
    node = Testbed.attach(_chosen(args.net)).node(args.node)
    sys.stdout.flush()
    # In our place, so that the terminal, signals and the exit code are the command's own.
    os.execvpe(node.command[0], [*node.command, *command], {**os.environ, **node.environment})


def _check(args: argparse.Namespace) -> int:
    output = Output(args.json)
    topology = _topology(args)
    if topology and args.net:
        raise Misuse("--net names a network that is up, and the other options describe a new one; choose one")
    if topology is None and (args.net or _usable()):
        rows = _measure(Testbed.attach(_chosen(args.net)), args.seconds, output)
    else:
        with Testbed(topology or chain(3, args.rate, args.loss)) as bed:
            rows = _measure(bed, args.seconds, output)
    if output.json:
        output.document(rows)
    else:
        delays = [f"ipv{family}_ns" for family in FAMILIES]
        output.table(
            ["from", "to", *(f"IPv{family} round trip" for family in FAMILIES), "lost", "throughput"],
            [
                [row["from"], row["to"], *(units.show_ns(row[delay]) for delay in delays),
                 f"{row['lost']} of {row['sent']}", f"{row['bits_per_s'] / 1e6:.1f} Mbit/s"]
                for row in rows
            ],
        )  # fmt: skip
    return 1 if any(row["lost"] == row["sent"] for row in rows) else 0


def _measure(bed: Testbed, seconds: float, output: Output) -> list[dict[str, Any]]:
    rows = []
    for here, there in itertools.combinations(bed.nodes, 2):
        output.progress(f"measuring {here.name} to {there.name}")
        row: dict[str, Any] = {"from": here.name, "to": there.name, "sent": _PINGS * len(FAMILIES), "lost": 0}
        for family in FAMILIES:
            delays = _round_trips(here, there, family)
            row["lost"] += _PINGS - len(delays)
            row[f"ipv{family}_ns"] = statistics.median(delays) if delays else None
        row["bits_per_s"] = _throughput(here, there, seconds) if row["lost"] < row["sent"] else 0.0
        rows.append(row)
    return rows


def _round_trips(here: Node, there: Node, family: Family) -> list[int]:
    """Both ends in this one thread: what is measured is the network, and no scheduler."""
    kind = _SOCKET_FAMILY[family]
    delays: list[int] = []
    with here.open_socket(kind) as client, there.open_socket(kind) as server:
        server.bind((there.address(family), 0))
        client.bind((here.address(family), 0))
        for end in (client, server):
            end.settimeout(_PING_TIMEOUT_S)
        client.connect(server.getsockname())
        server.connect(client.getsockname())
        for number in range(_PINGS + 1):
            if number > _HOPELESS and not delays:
                break
            question = number.to_bytes(8)
            with contextlib.suppress(OSError):
                started = time.perf_counter_ns()
                for sender, receiver in ((client, server), (server, client)):
                    sender.send(question)
                    while receiver.recv(64) != question:
                        pass
                delays.append(time.perf_counter_ns() - started)
                # The first also waits for address resolution, and does not count.
                if number == 0:
                    delays.clear()
    return delays


def _throughput(here: Node, there: Node, seconds: float) -> float:
    """Bits per second of one TCP connection; 0 when there is none."""
    block = bytearray(64 * 1024)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(there.open_socket(kind=socket.SOCK_STREAM))
        listener.bind((there.address(), 0))
        listener.listen()
        client = stack.enter_context(here.open_socket(kind=socket.SOCK_STREAM))
        client.settimeout(1.0)
        listener.settimeout(1.0)
        try:
            client.connect(listener.getsockname())
            server = stack.enter_context(listener.accept()[0])
        except OSError:
            return 0.0
        client.setblocking(False)
        server.setblocking(False)
        received, started = 0, time.perf_counter()
        while (now := time.perf_counter()) < started + seconds:
            readable, writable, _ = select.select([server], [client], [], started + seconds - now)
            with contextlib.suppress(BlockingIOError):
                if writable:
                    client.send(block)
                if readable:
                    received += server.recv_into(block)
        return received * 8 / seconds


def _add_topology(parser: argparse.ArgumentParser) -> None:
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument(
        "--topology", metavar="FILE", type=Path, help="a network from a file (see 'ringcast lab net --help')"
    )
    shape.add_argument("--chain", metavar="N", type=units.count, help="N nodes in a row, routers between (default: 3)")
    shape.add_argument("--star", metavar="N", type=units.count, help="N hosts around a switch")
    parser.add_argument("--rate", metavar="RATE", help="of links that say nothing else, as 10mbit")
    parser.add_argument("--loss", metavar="LOSS", help="of links that say nothing else, as 1%% or 'every 100'")


def _topology(args: argparse.Namespace) -> Topology | None:
    """What the options describe; None when they name no shape."""
    if args.topology:
        topology = Topology.load(args.topology)
        return msgspec.structs.replace(topology, rate=args.rate or topology.rate, loss=args.loss or topology.loss)
    if args.star:
        return star(args.star, args.rate, args.loss)
    if args.chain or args.rate or args.loss:
        return chain(args.chain or 3, args.rate, args.loss)
    return None


def _chosen(name: str | None) -> cleanup.Record:
    found = [record for record in _usable() if name in (None, record.run)]
    if len(found) == 1:
        return found[0]
    if name is not None:
        raise Misuse(f"there is no network {name!r}; 'ringcast lab net list' shows those that are up")
    if not found:
        raise Misuse("no network is up; 'ringcast lab net up' makes one")
    raise Misuse(f"several networks are up, say which one: {', '.join(record.run for record in found)}")


def _usable() -> list[cleanup.Record]:
    return [record for record in cleanup.records() if not record.abandoned]


def _facts(bed: Testbed) -> list[dict[str, Any]]:
    return [
        {
            "node": node.name,
            "kind": node.kind,
            "namespace": node.namespace,
            "addresses": [node.address(family) for family in FAMILIES],
            "links": [port.peer for port in bed.plan.ports[node.name]],
        }
        for node in bed.nodes
    ]
