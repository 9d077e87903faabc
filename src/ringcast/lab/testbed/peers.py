"""Other libraries between two nodes of a testbed: which are installed, and a pair of processes of each.

The adapters are the benchmarks' (`bench/` of the source checkout), run by the peers' own environment. Where either is
missing there are no peers, and `MISSING` says what to do. Invariant: a peer that fails ends its own part,
with a note, and never the experiment.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ringcast.lab.testbed.actor import Actor, ActorFailed
from ringcast.lab.testbed.network import Testbed

MISSING = "no peer is installed: run 'sh bench/setup_peers.sh' in a source checkout"
ADAPTERS = ("pyzmq", "zenoh", "cyclonedds")
_OPEN_S = 15.0
_ports = itertools.count(20_000)


class Peer(NamedTuple):
    """One way of using a library across nodes."""

    name: str
    adapter: str
    version: str
    offers: frozenset[str]


class Peers:
    """Peers that can be measured on this testbed, and why others cannot (`absent`)."""

    def __init__(self, bed: Testbed, here: str, there: str, adapters: Sequence[str] = ADAPTERS) -> None:
        self._bed = bed
        self._nodes = (here, there)
        self._hosts = ",".join(bed.node(name).address() for name in self._nodes)
        self.absent: dict[str, str] = {}
        self.found: list[Peer] = []
        bench = place()
        if bench is None:
            return
        self._bench = bench
        with ExitStack() as stack:
            asked = [(name, stack.enter_context(self._actor(name, here))) for name in adapters]
            for _, actor in asked:
                actor.post("describe")
            for adapter, actor in asked:
                try:
                    described = actor.reply(_OPEN_S)
                except ActorFailed as exc:
                    self.absent[adapter] = exc.reason
                    continue
                self.found += [
                    Peer(one["name"], adapter, one["version"], frozenset(one["offers"]))
                    for one in described if "network" in one["offers"]
                ]  # fmt: skip

    def failed(self, peer: Peer, reason: str) -> None:
        """It is not tried again."""
        self.absent[peer.name] = reason
        self.found = [other for other in self.found if other is not peer]

    @contextmanager
    def pair(self, peer: Peer, *ends: dict[str, Any]) -> Iterator[tuple[Actor, Actor]]:
        """Both ends open and joined, the first on the first node. Raises ActorFailed."""
        with tempfile.TemporaryDirectory(prefix="ringcast-lab-") as folder, ExitStack() as stack:
            first, second = (stack.enter_context(self._actor(peer.adapter, name)) for name in self._nodes)
            where = {
                "folder": folder, "port": next(_ports), "token": f"lab{next(_ports)}",
                "host": self._bed.node(self._nodes[0]).address(),
            }  # fmt: skip
            # In order, because some need the first to be there.
            for actor, end in zip((first, second), ends, strict=True):
                actor.ask("open", _OPEN_S, peer=peer.name, place=where, **end)
            for actor in (first, second):
                actor.post("match", others=1, timeout_s=_OPEN_S - 1)
            for actor in (first, second):
                actor.reply(_OPEN_S)
            yield first, second

    def _actor(self, adapter: str, node: str) -> Actor:
        command = [str(python(self._bench)), str(self._bench / "worker.py"), adapter]
        return Actor(self._bed.node(node), command, {"BENCH_HOSTS": self._hosts})


def place() -> Path | None:
    """The checkout's `bench/`, when its peers' environment is there too."""
    for parent in Path(__file__).resolve().parents:
        bench = parent / "bench"
        if (bench / "worker.py").is_file() and python(bench).exists():
            return bench
    return None


def python(bench: Path) -> Path:
    return bench.parent / ".venv-peers" / "bin" / "python"
