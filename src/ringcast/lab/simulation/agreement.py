"""How fast, and for how many bytes, many nodes agree: membership and the tag table of daemons, simulated.

Nodes start knowing one of them, then a tag is created, then a node is killed; each time the virtual time and the
traffic until all agree are measured. The seed decides everything but how long the simulation takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ringcast.control.peering import TableDelta, TableDigest, TableSummary
from ringcast.daemon.mesh.core.timing import Timing
from ringcast.lab.simulation.many_nodes import MeshSimulation
from ringcast.lab.simulation.settled import settle

_PATIENCE_S = 60.0
_QUIET_S = 5.0
_TABLE = (TableDelta, TableDigest, TableSummary)


class Spread(NamedTuple):
    """How a new tag became known to all: `rounds` are steps from node to node, the rest is per node."""

    after_s: float
    rounds: int
    messages: float
    bytes: float


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """`rounds` are steps from node to node; bytes and messages are per node, and those when idle per second. None was
    not measured."""

    nodes: int
    join_s: float
    join_bytes: float
    change_s: float
    change_rounds: int
    change_bytes: float
    change_messages: float
    failure_s: float | None
    failure_bytes: float | None
    idle_bytes: float | None
    idle_messages: float | None
    largest_bytes: int


def measure(
    nodes: int = 1000, seed: int = 1, progress: Callable[[str], None] = lambda step: None, brief: bool = False
) -> Agreement:
    """With `brief`, idle traffic is not measured and no node is killed.

    Raises RuntimeError when the nodes do not agree within a minute of virtual time.
    """
    sim = MeshSimulation(seed=seed, timing=Timing())
    names = [f"n{number}" for number in range(nodes)]
    progress(f"{nodes} nodes find each other")
    for name in names:
        sim.start(name, names[:1] if name != names[0] else ())
    join_s = _agree(sim)
    join_bytes = _sent(sim)[1] / nodes

    idle: list[float | None] = [None, None]
    if not brief:
        progress("nothing happens")
        sim.run(_QUIET_S)
        before = _sent(sim)
        sim.run(_QUIET_S)
        idle = [(now - then) / nodes / _QUIET_S for now, then in zip(_sent(sim), before, strict=True)]

    progress("a tag is created")
    spread = _spread(sim, names)

    failure_s = failure_bytes = None
    if not brief:
        progress("a node is killed")
        before = _sent(sim)
        sim.kill(names[-1])
        failure_s = _agree(sim)
        failure_bytes = (_sent(sim)[1] - before[1]) / nodes
    return Agreement(
        nodes=nodes, join_s=join_s, join_bytes=join_bytes, change_s=spread.after_s, change_rounds=spread.rounds,
        change_bytes=spread.bytes, change_messages=spread.messages, failure_s=failure_s,
        failure_bytes=failure_bytes, idle_bytes=idle[1], idle_messages=idle[0],
        largest_bytes=max(node.largest_bytes for node in sim.nodes.values()),
    )  # fmt: skip


def spread(nodes: int, seed: int = 1) -> Spread:
    """A new tag in a mesh whose nodes have found each other: there may be more of them so.

    Raises RuntimeError when the nodes do not agree within a minute of virtual time.
    """
    sim = MeshSimulation(seed=seed, timing=Timing())
    names = [f"n{number}" for number in range(nodes)]
    settle(sim, names)
    return _spread(sim, names)


def _spread(sim: MeshSimulation, names: list[str]) -> Spread:
    before = _sent(sim, _TABLE)
    sim.follow(names[1])
    sim.change(names[1], lambda table: table.open_tag("lab/temperature", {})[1])
    after_s = _agree(sim)
    messages, size = [(now - then) / len(names) for now, then in zip(_sent(sim, _TABLE), before, strict=True)]
    return Spread(after_s, max(node.depth or 0 for node in sim.running()), messages, size)


def rows(result: Agreement) -> list[dict[str, Any]]:
    """As every experiment prints them."""

    def row(name: str, value: float | None, unit: str, target: float | None = None) -> dict[str, Any]:
        met = value <= target if value is not None and target is not None else None
        return {
            "name": f"mesh of {result.nodes} nodes, simulated: {name}", "value": value, "unit": unit,
            "reference": None, "target": target, "met": met,
        }  # fmt: skip

    found = [
        row("all found each other after", result.join_s, "s"),
        row("bytes sent per node until then", result.join_bytes, "B"),
        row("all agree on a new tag after", result.change_s, "s", 1.0),
        row("rounds until then", result.change_rounds, "rounds"),
        row("bytes sent per node for it", result.change_bytes, "B"),
        row("all agree that a killed node is gone after", result.failure_s, "s"),
        row("bytes per second and node when nothing happens", result.idle_bytes, "B/s"),
        row("largest message", result.largest_bytes, "B"),
    ]
    return [one for one in found if one["value"] is not None]


def _agree(sim: MeshSimulation) -> float:
    start_ns = sim.now_ns
    if not sim.run_until(sim.agree, _PATIENCE_S, every_s=0.001):
        raise RuntimeError(f"{len(sim.running())} nodes do not agree after {_PATIENCE_S:g} s")
    return (sim.now_ns - start_ns) / 1e9


def _sent(sim: MeshSimulation, kinds: tuple[type[Any], ...] | None = None) -> tuple[int, int]:
    """Messages and bytes so far."""
    counts = [count for kind, count in sim.sent.items() if kinds is None or kind in kinds]
    return sum(messages for messages, _ in counts), sum(size for _, size in counts)
