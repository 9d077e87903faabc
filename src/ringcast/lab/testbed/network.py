"""A network on this machine: every node a network namespace, every wire a veth pair, real routers and bridges.

    with Testbed(chain(3, rate="10mbit")) as bed:
        bed.node("a").run(["ping", "-c1", bed.node("c").address()])
        bed.link("a", "b").set_loss("3%")

Built with the commands `ip`, `tc` and `iptables` rather than with pyroute2: loss needs iptables anyway and commands in
a node need `ip netns exec`, so pyroute2 would be one more dependency and not one less. One script per node, all nodes
at once, is fast. Whatever is done here can be looked at and repeated by hand.

Invariant: the machine's own network is never touched, because both ends of each veth are made inside namespaces. All
that exists was recorded first (`cleanup`), and leaving the `with` block removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ringcast.lab.testbed import cleanup
from ringcast.lab.testbed.cleanup import LabError, LabUnavailable, tool
from ringcast.lab.testbed.link import Link
from ringcast.lab.testbed.node import Node
from ringcast.lab.testbed.scripts import FILTERS, namespaces_and_wires, node_script
from ringcast.lab.testbed.topology import Plan, Topology

_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}


def unavailable() -> str | None:
    """Why there can be no testbed here, in one sentence; None when there can."""
    status = Path("/proc/self/status").read_text()
    held = int(re.findall(r"^CapEff:\s*(\w+)", status, re.MULTILINE)[0], 16)
    if missing := [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]:
        return (
            f"network namespaces need root ({' and '.join(missing)} missing): use sudo, or 'ringcast up --nodes 3', "
            "which runs several daemons on loopback addresses without it"
        )
    try:
        for name in ("ip", "tc", *FILTERS):
            tool(name)
    except LabUnavailable as exc:
        return str(exc)
    return None


class Testbed:
    """A network that exists while its `with` block runs. Entering raises LabUnavailable, LabError."""

    __test__ = False  # pytest takes every class called Test... for a test

    def __init__(self, topology: Topology, *, keep: bool = False, _run_id: str | None = None) -> None:
        """With `keep` it outlives block and process, until `ringcast lab net down`. Raises TopologyError."""
        self.plan = Plan(topology)
        self.run_id = _run_id or secrets.token_hex(4)
        self._keep = keep
        self.processes: list[subprocess.Popen[str]] = []
        """Those that `Node.spawn` started. They end with the testbed."""
        self.sockets: list[socket.socket] = []
        """Those that `Node.open_socket` opened. They are closed with it."""

    @classmethod
    def attach(cls, record: cleanup.Record) -> Self:
        """A testbed that another process made: for its nodes and links. It need not be closed."""
        return cls(record.topology, keep=True, _run_id=record.run)

    def __enter__(self) -> Self:
        if reason := unavailable():
            raise LabUnavailable(reason)
        cleanup.sweep()
        try:
            with cleanup.undisturbed():
                cleanup.write(cleanup.Record.mine(self.run_id, self.plan.topology, self._keep))
                self._build()
        except BaseException:
            cleanup.remove(self.run_id)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or not self._keep:
            self.close()

    def close(self) -> None:
        """End what runs in the nodes and remove everything; may be called again. Raises LabError."""
        try:
            cleanup.remove(self.run_id)
        finally:
            for process in self.processes:
                process.kill()  # only one that had not reached its namespace still lives
                process.wait()
                for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
            # An open socket would keep its namespace, nameless, in existence.
            for opened in self.sockets:
                opened.close()

    @property
    def nodes(self) -> list[Node]:
        """Hosts and routers."""
        return [Node(self, name) for name in self.plan.machines]

    @property
    def links(self) -> list[Link]:
        return [self.link(*wire.between) for wire in self.plan.wires]

    def node(self, name: str) -> Node:
        """Raises TopologyError."""
        return Node(self, self.plan.port(name).node)

    def link(self, one: str, other: str) -> Link:
        """Raises TopologyError."""
        return Link(self, self.plan.port(one, other), self.plan.port(other, one))

    def run_scripts(self, scripts: Mapping[str, str], problem: str) -> list[str]:
        """Run a shell script in each of these nodes, all at once; returns what they print. Raises LabError."""
        commands = [[*Node(self, name).command, "sh", "-ec", text] for name, text in scripts.items()]
        return _all_at_once(commands, problem)

    def _build(self) -> None:
        _all_at_once([["sh", "-c", namespaces_and_wires(self.plan, self.run_id)]], "cannot make the namespaces")
        self.run_scripts({name: node_script(self.plan, name) for name in self.plan.kinds}, "cannot set up the nodes")


def _all_at_once(commands: Sequence[Sequence[str]], problem: str) -> list[str]:
    """Run these, in process groups that Ctrl-C does not reach; returns what they print. Raises LabError."""
    environment = {**os.environ, "PATH": cleanup.SEARCH, "LC_ALL": "C"}
    running = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, process_group=0,
        )
        for command in commands
    ]  # fmt: skip
    said = [process.communicate() for process in running]
    if failed := [" ".join(said[at][1].split()) for at, process in enumerate(running) if process.returncode]:
        raise LabError(f"{problem}: {'; '.join(filter(None, failed)) or 'no reason given'}")
    return [output for output, _ in said]
