"""How cost grows with nodes: real daemons in network namespaces, and simulated ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ringcast
from growth.curve import Curve
from growth.holders import Holders, daemon, free_ports, memory_bytes
from growth.one_node import KIB, PATIENCE_S, Found, idle_percent
from harness.rows import at_most, note, plain
from ringcast.lab.simulation.agreement import measure as agreement
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import star
from ringcast.testing.waiting import wait_until

PORT = 7417
JOINS = (1, 2, 5, 10, 20, 50)
ASKED = 20
"""The size of the mesh for which the time to join is asked."""


class _Mesh:
    """Daemons that know each other, one more whenever `start` is called."""

    def __init__(self, place: Path, stack: ExitStack, bed: Testbed | None, most: int) -> None:
        self._place, self._stack = place, stack
        if bed is None:
            self._addresses = [f"127.0.0.1:{port}" for port in free_ports(most)]
            self._before: list[list[str]] = [[] for _ in range(most)]
        else:
            hosts = [node for node in bed.nodes if node.name != "hub"][:most]
            self._addresses = [f"{node.address()}:{PORT}" for node in hosts]
            self._before = [node.command for node in hosts]
        self.pids: list[int] = []

    def start(self) -> str:
        """The socket of one that has started; it knows the first few of those before."""
        number = len(self.pids)
        peers = [word for address in self._addresses[: min(number, 3)] for word in ("--peer", address)]
        path, pid = self._stack.enter_context(
            daemon(
                self._place, f"n{number}", "--listen", self._addresses[number], "--no-scout", *peers,
                before=self._before[number],
            )
        )  # fmt: skip
        self.pids.append(pid)
        return path


@contextmanager
def _mesh(place: Path, most: int) -> Iterator[_Mesh]:
    with ExitStack() as stack:
        bed = None if unavailable() else stack.enter_context(Testbed(star(most)))
        yield _Mesh(place, stack, bed, most)


def nodes(place: Path, most: int, tags_held: int) -> Found:
    """A node that joins a mesh whose tags it has to learn: the mesh grows to `most` nodes."""
    if reason := unavailable():
        yield note(f"nodes were measured on loopback, not in network namespaces: {reason}")
    joins, idles = [], []
    slowest = 0.0
    with _mesh(place, most + 1) as mesh, ExitStack() as stack:
        sessions = [_connected(stack, mesh.start()) for _ in range(2)]
        before = memory_bytes(mesh.pids[1])
        holders = stack.enter_context(Holders(str(place / "n0.sock"), 2500))
        holders.grow_to("tags", tags_held)
        _wait_for_tags(sessions[1], tags_held)
        yield at_most(
            f"memory per tag on another node, {tags_held} tags",
            (memory_bytes(mesh.pids[1]) - before) / tags_held / KIB, "KiB", 2.0,
        )  # fmt: skip
        for n in [count for count in JOINS if 2 <= count <= most]:
            while len(mesh.pids) < n:
                _wait_for_tags(_connected(stack, mesh.start()), tags_held)
            wait_until(lambda n=n: _here(sessions[1]) == n, patience_s=PATIENCE_S)
            idles.append((n, idle_percent(mesh.pids, 2.0) / n))
            took, held_up = _join(mesh, stack, sessions[1], tags_held)
            joins.append((n, took))
            slowest = max(slowest, held_up)
            if n == min(ASKED, most):
                yield at_most(f"join a mesh of {n} with {tags_held} tags, its daemon's start included", took, "s", 2.0)
                yield at_most(f"status request at another node while one joins {n}, longest", 1e3 * held_up, "ms", 50.0)
    yield Curve(f"join and know all {tags_held} tags", "nodes", "s", "linear", joins)
    yield plain("status request at another node while one joins, longest of all", 1e3 * slowest, "ms")
    yield Curve("daemon when idle", "nodes", "% of a core", "linear", idles)


def _join(mesh: _Mesh, stack: ExitStack, other: ringcast.Session, tags_held: int) -> tuple[float, float]:
    """How long until the next node knows all tags, and the longest that another node's answer took meanwhile."""
    begin = time.perf_counter()
    late = _connected(stack, mesh.start())
    held_up = 0.0
    while late.status().tags < tags_held:
        asked = time.perf_counter()
        other.status()
        held_up = max(held_up, time.perf_counter() - asked)
        time.sleep(0.005)
    return time.perf_counter() - begin, held_up


def _connected(stack: ExitStack, path: str) -> ringcast.Session:
    return stack.enter_context(ringcast.connect(path, start=False))


def _here(session: ringcast.Session) -> int:
    return sum(row.state == "here" for row in session.nodes())


def _wait_for_tags(session: ringcast.Session, count: int) -> None:
    wait_until(lambda: session.status().tags >= count, patience_s=PATIENCE_S)


def simulated(sizes: Sequence[int]) -> Found:
    """The daemons' own membership and gossip, in virtual time and in one process."""
    found = [agreement(n, brief=True) for n in sizes]

    def curve(name: str, unit: str, order: str, field: str) -> Curve:
        points = [(one.nodes, getattr(one, field)) for one in found]
        # Fewer are reached in one step.
        return Curve(name, "simulated nodes", unit, order, points, grows_from=30)

    yield curve("all nodes know of a new tag", "s", "logarithmic", "change_s")
    yield curve("steps from node to node until then", "steps", "logarithmic", "change_rounds")
    yield curve("bytes sent per node for a new tag", "B", "logarithmic", "change_bytes")
    yield curve("bytes sent per node until all found each other", "B", "linear", "join_bytes")
    yield plain(f"{found[-1].nodes} simulated nodes: all know of a new tag after", found[-1].change_s, "s")
