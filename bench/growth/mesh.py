"""How cost grows with nodes: real daemons in network namespaces, and simulated ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ringcast
from growth.curve import Curves
from growth.holders import Holders, daemon, free_ports
from growth.probes import KIB, PATIENCE_S, US, Found, Probe, best, idle_percent, median_of, own_bytes
from harness.rows import at_most, note
from ringcast.errors import RingcastError
from ringcast.lab.simulation.agreement import Spread, spread
from ringcast.lab.simulation.agreement import measure as agreement
from ringcast.lab.testbed.network import Testbed, unavailable
from ringcast.lab.testbed.topology import star
from ringcast.testing.waiting import wait_until

PORT = 7417
JOINS = (2, 5, 10, 20, 32, 50)
COMMON_CLOCK = '[clock]\nsource = "common"\n'
"""All nodes are on one machine: fifty daemons that probe each other's clocks would take more than its cores."""
REPEATED = 3
"""How often a node joins the mesh for which the time is asked."""


class _Mesh:
    """Daemons that know each other, one more whenever `start` is called."""

    def __init__(self, place: Path, stack: ExitStack, bed: Testbed | None, most: int, settings: str) -> None:
        self._place, self._stack, self._settings = place, stack, settings
        if bed is None:
            self._addresses = [f"127.0.0.1:{port}" for port in free_ports(most)]
            self._before: list[list[str]] = [[] for _ in range(most)]
        else:
            hosts = [node for node in bed.nodes if node.name != "hub"][:most]
            self._addresses = [f"{node.address()}:{PORT}" for node in hosts]
            self._before = [node.command for node in hosts]
        self.pids: list[int] = []
        self.sessions: list[ringcast.Session] = []

    def start(self) -> ringcast.Session:
        """A session with one that has started; it knows the first few of those before."""
        number = len(self.pids)
        peers = [word for address in self._addresses[: min(number, 3)] for word in ("--peer", address)]
        path, pid = self._stack.enter_context(
            daemon(
                self._place, f"n{number}", "--listen", self._addresses[number], "--no-scout", *peers,
                before=self._before[number], settings=self._settings,
            )
        )  # fmt: skip
        self.pids.append(pid)
        session = self._stack.enter_context(ringcast.connect(path, start=False))
        self.sessions.append(session)
        return session

    def grow_to(self, count: int, tags_held: int) -> None:
        """Until every node knows every other and all tags."""
        while len(self.pids) < count:
            self.start()
        for session in self.sessions:
            wait_until(lambda s=session: s.status().tags >= tags_held and _here(s) == count, patience_s=PATIENCE_S)


@contextmanager
def _mesh(place: Path, most: int, settings: str = "") -> Iterator[_Mesh]:
    with ExitStack() as stack:
        bed = None if unavailable() else stack.enter_context(Testbed(star(most, hub="router")))
        yield _Mesh(place, stack, bed, most, settings)


def nodes(place: Path, most: int, tags_held: int) -> Found:
    """A mesh that grows to `most` nodes, which know the tags of the first."""
    if reason := unavailable():
        yield note(f"nodes were measured on loopback, not in network namespaces: {reason}")
    curves = Curves("nodes")
    with _mesh(place, most + 1, COMMON_CLOCK) as mesh, Holders(str(place / "n0.sock"), 2500) as holders:
        mesh.grow_to(2, 0)
        alone = own_bytes(mesh.pids[1])
        holders.grow_to("both", tags_held)
        mesh.grow_to(2, tags_held)
        before = own_bytes(mesh.pids[1])
        memory = (before - alone) / tags_held / KIB
        yield at_most(
            f"memory per tag with a publisher and a subscriber on another node, {tags_held} tags", memory, "KiB", 2.0
        )
        publisher = mesh.sessions[0].tag("first", depth=64, capacity_bytes=64 * KIB).publisher()
        probe = Probe(str(place / "n1.sock"), mesh.sessions[1])
        for n in [count for count in JOINS if count <= most]:
            mesh.grow_to(n, tags_held)
            other = mesh.sessions[1]
            idle = idle_percent(mesh.pids, 2.0) / n
            curves.add(n, "a daemon when idle", max(idle, 1e-3), "% of a core", "linear", grows_from=5)
            if n > 2:
                known = (own_bytes(mesh.pids[1]) - before) / (n - 2) / KIB
                curves.add(n, "memory per node that a daemon knows", max(known, 1.0), "KiB", "constant", grows_from=5)
            told = best(lambda n=n: _until_told(mesh), 3)
            curves.add(n, "all know of a new tag", told, "s", "logarithmic", grows_from=20)
            probe.measure(curves, n)
            far = median_of(lambda other=other: other.subscribe("first"), 11, lambda sub: sub.close())
            curves.add(n, "subscribe to a tag of another node", US * far, "us", "constant")
            if n < most:  # the next one joins
                took, held_up = _join(mesh, tags_held)
                curves.add(n, f"join and know all {tags_held} tags", took, "s", "linear")
                curves.add(n, "longest answer of a daemon meanwhile", 1e3 * held_up, "ms", "linear")
        publisher.close()
    yield from curves


def _until_told(mesh: _Mesh) -> float:
    """Seconds until all nodes know of a tag that is made on the first."""
    before = [session.status().tags for session in mesh.sessions]
    name = f"news/{time.monotonic_ns()}"
    begin = time.perf_counter()
    made = mesh.sessions[0].tag(name)
    waiting = list(zip(mesh.sessions, before, strict=True))
    while waiting:
        waiting = [(session, count) for session, count in waiting if session.status().tags <= count]
    took = time.perf_counter() - begin
    made.destroy()
    for session, count in zip(mesh.sessions, before, strict=True):
        wait_until(lambda s=session, c=count: s.status().tags <= c, patience_s=PATIENCE_S)
    return took


def join(place: Path, most: int, tags_held: int) -> Found:
    """A node that joins a mesh of `most` whose tags it has to learn."""
    with _mesh(place, most + REPEATED) as mesh, Holders(str(place / "n0.sock"), 2500) as holders:
        mesh.grow_to(1, 0)
        holders.grow_to("tags", tags_held)
        mesh.grow_to(most, tags_held)
        joins = [_join(mesh, tags_held) for _ in range(REPEATED)]
    took, held_up = max(seconds for seconds, _ in joins), max(longest for _, longest in joins)
    yield at_most(
        f"join a mesh of {most} with {tags_held} tags, its daemon's start included, slowest of {REPEATED}",
        took,
        "s",
        2.0,
    )
    yield at_most(f"longest that a daemon did not answer while one joins {most}", 1e3 * held_up, "ms", 50.0)


class _Asking(threading.Thread):
    """Asks a daemon all the time how it is, and remembers the longest that it took to answer."""

    def __init__(self, session: ringcast.Session) -> None:
        super().__init__()
        self.longest_s = 0.0
        self._session = session
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.005):
            asked = time.perf_counter()
            try:
                self._session.status()
            except RingcastError:
                return
            self.longest_s = max(self.longest_s, time.perf_counter() - asked)

    def end(self) -> float:
        self._over.set()
        self.join()
        return self.longest_s


def _join(mesh: _Mesh, tags_held: int) -> tuple[float, float]:
    """How long until the next node knows all tags, and the longest that a daemon took to answer meanwhile: the new one,
    or one of those that it asks."""
    asking = [_Asking(session) for session in mesh.sessions[:3]]
    begin = time.perf_counter()
    late = mesh.start()
    asking.append(_Asking(late))
    try:
        wait_until(lambda: late.status().tags >= tags_held, patience_s=PATIENCE_S)
        took = time.perf_counter() - begin
        wait_until(lambda: _here(late) == len(mesh.pids), patience_s=PATIENCE_S)
    finally:
        held_up = max(one.end() for one in asking)
    return took, held_up


def _here(session: ringcast.Session) -> int:
    return sum(row.state == "here" for row in session.nodes())


def simulated(sizes: Sequence[int], largest: int) -> Found:
    """The daemons' own membership and gossip, in virtual time and in one process. Of the largest mesh only what follows
    once its nodes have found each other, which share what they know of each other: it would not fit otherwise."""
    curves = Curves("simulated nodes")
    for n in sizes:
        one = agreement(n, brief=True)
        _spread(curves, n, Spread(one.change_s, one.change_rounds, one.change_messages, one.change_bytes))
        found = one.join_bytes
        curves.add(n, "bytes sent per node until all found each other", found, "B", "linear", grows_from=30)
    _spread(curves, largest, spread(largest))
    yield from curves
    after = curves.last("all nodes know of a new tag")
    yield at_most(f"{largest} simulated nodes: all know of a new tag after", after, "s", 1.0)


def _spread(curves: Curves, n: int, found: Spread) -> None:
    # Fewer than thirty are reached in one step.
    curves.add(n, "all nodes know of a new tag", found.after_s, "s", "logarithmic", grows_from=30)
    curves.add(n, "steps from node to node until then", found.rounds, "steps", "logarithmic", grows_from=30)
    curves.add(n, "bytes sent per node for a new tag", found.bytes, "B", "logarithmic", grows_from=30)
