"""A real daemon on nodes of a testbed, all joined to each other, and a session with each to observe it.

The sessions are this process's own: a daemon's socket is a file, which all nodes of a testbed see.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ringcast
from ringcast.lab.testbed import affinity
from ringcast.lab.testbed.cleanup import LabError
from ringcast.lab.testbed.network import Testbed
from ringcast.lab.testbed.opened import Opened
from ringcast.lab.testbed.topology import Family

PORT = 7417
PATIENCE_S = 60.0
PATIENCE_PER_NODE_S = 3.0
"""Many daemons that start at once share the cores."""
_POLL_S, _SLOWEST_POLL_S = 0.002, 0.02
"""Between two looks, at first and at most: those who look take the cores from those who start."""
# Nobody reads its output: a pipe would fill up and block it.
_SILENT: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class MeshNodes(Opened):
    """Leaving the `with` block closes the sessions; the daemons end with the testbed. Entering raises LabError."""

    def __init__(
        self, bed: Testbed, names: Sequence[str], environments: Mapping[str, Mapping[str, str]] | None = None,
        *, family: Family = 4, config: Path | None = None,
    ) -> None:  # fmt: skip
        """`environments` have, by a node's name, what its daemon finds in the environment besides. All daemons listen
        on addresses of that family, and read that configuration."""
        self.bed = bed
        self.names = list(names)
        self._environments = environments or {}
        self._family = family
        self._configured = ["--config", str(config)] if config is not None else ["--no-config"]
        self.sessions: dict[str, ringcast.Session] = {}
        self.pids: dict[str, int] = {}

    def _open(self, stack: ExitStack) -> None:
        host = "[{}]" if self._family == 6 else "{}"
        addresses = {name: f"{host.format(self.bed.node(name).address(self._family))}:{PORT}" for name in self.names}
        for number, name in enumerate(self.names):
            peers = [word for other in self.names[:number] for word in ("--peer", addresses[other])]
            command = [sys.executable, "-m", "ringcast", "daemon", *self._configured, "--name", name]
            command += ["--listen", addresses[name]]
            environment = {**os.environ, **self._environments.get(name, {})}
            process = self.bed.node(name).spawn([*command, "--no-scout", *peers], **_SILENT, env=environment)
            self.pids[name] = process.pid
        for name in self.names:
            self.sessions[name] = stack.enter_context(self._connect(name))
        self.wait(lambda: all(self._sees_all(name) for name in self.names), "the nodes did not find each other")

    def pin(self, cores: dict[str, int]) -> None:
        """Bind each node's daemon to a core. Raises ProcessLookupError."""
        for name, core in cores.items():
            affinity.pin(self.pids[name], {core})

    def wait(self, condition: Callable[[], bool], problem: str) -> None:
        """Raises LabError."""
        patience_s = PATIENCE_S + PATIENCE_PER_NODE_S * len(self.names)
        deadline, pause_s = time.monotonic() + patience_s, _POLL_S
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"{problem} within {patience_s:g} s")
            time.sleep(pause_s)
            pause_s = min(1.2 * pause_s, _SLOWEST_POLL_S)

    def wait_for_publisher(self, *tags: str) -> None:
        """Until all nodes know of a publisher on each of these. Raises LabError."""

        def known() -> bool:
            return all(any(row.publishers for row in s.tags(tag)) for s in self.sessions.values() for tag in tags)

        self.wait(known, f"not all nodes heard of the publishers on {', '.join(tags)}")

    def wait_for_way(self, tag: str, *nodes: str) -> None:
        """Until the tag's messages go from the first of these nodes to the last through those between, and each leg
        is open. Raises LabError."""

        def open_() -> bool:
            return all(
                any(row.direction == "in" and row.node == before and row.tag == tag for row in channels(after))
                for before, after in itertools.pairwise(nodes)
            )

        def channels(name: str) -> list[ringcast.ChannelStatus]:
            return self.sessions[name].channels(why=False)

        self.wait(open_, f"no channel of {tag!r} through {', '.join(nodes)}")

    def _sees_all(self, name: str) -> bool:
        here = {row.name for row in self.sessions[name].nodes() if row.state == "here"}
        return here >= set(self.names)

    def _connect(self, name: str) -> ringcast.Session:
        socket = self.bed.node(name).environment["RINGCAST_SOCKET"]
        found: list[ringcast.Session] = []

        def connected() -> bool:
            try:
                found.append(ringcast.connect(socket, start=False, program="ringcast lab"))
            except ringcast.DaemonUnavailable:
                return False
            return True

        self.wait(connected, f"the daemon of node {name!r} did not start")
        return found[0]
