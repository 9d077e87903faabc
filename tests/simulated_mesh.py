"""A simulated mesh for tests: what its nodes do, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable

from ringcast.control.peering import MAX_FRAME_BYTES
from ringcast.daemon.table.rows import Change, PublisherRow, SubscriberRow
from ringcast.daemon.table.table import TagTable
from ringcast.lab.simulation.many_nodes import MeshSimulation, SimulatedNode
from ringcast.model.identity import PublisherInfo, SubscriberInfo

PATIENCE_S = 120.0
"""Of virtual time; nothing depends on how much of it is needed."""


def tag(name: str, **attributes: object) -> Callable[[TagTable], list[Change]]:
    return lambda table: table.open_tag(name, attributes)[1]


def publisher_row(node: str, number: int, name: str = "lab/temp") -> PublisherRow:
    info = PublisherInfo(id=number, node=node, tag=name, incarnation=number + 1, pid=1, user="u")
    return PublisherRow(info=info, depth=8, capacity_bytes=4096)


def publisher(number: int, name: str) -> Callable[[TagTable], list[Change]]:
    return lambda table: table.put(publisher_row(table.node, number, name))


def subscriber(number: int, pattern: str) -> Callable[[TagTable], list[Change]]:
    def write(table: TagTable) -> list[Change]:
        return table.put(
            SubscriberRow(info=SubscriberInfo(id=number, node=table.node, pattern=pattern, pid=1, user="u"))
        )

    return write


def mesh(count: int, seed: int = 1, **options: object) -> MeshSimulation:
    """Nodes n0, n1... that found each other through n0."""
    sim = MeshSimulation(seed=seed, through_wire=True, **options)  # type: ignore[arg-type]
    for number in range(count):
        sim.start(f"n{number}", ["n0"] if number else [])
    settle(sim)
    return sim


def settle(sim: MeshSimulation) -> None:
    assert sim.run_until(sim.agree, PATIENCE_S, every_s=0.01)


def seen(node: SimulatedNode, kind: type) -> list[object]:
    return [action for action in node.seen if isinstance(action, kind)]


def view(node: SimulatedNode) -> object:
    """What a node's clients see."""
    tags = node.table.tags()
    rows = sorted((p.info.node, p.info.id, p.alive) for row in tags for p in node.table.publishers(row.name))
    return tags, rows, sorted({*node.cluster.membership.names.holders, node.name})


def assert_quiet(sim: MeshSimulation) -> None:
    """Nodes that agree only ping and compare sums."""
    sim.run(1.0)
    before = sum(messages for messages, _ in sim.sent.values())
    sim.run(10.0)
    after = sum(messages for messages, _ in sim.sent.values())
    assert after - before <= 10 * 6 * len(sim.running())
    assert sim.agree()


def assert_same_view(sim: MeshSimulation) -> None:
    views = [view(node) for node in sim.running()]
    assert all(other == views[0] for other in views)
    assert all(node.largest_bytes <= MAX_FRAME_BYTES for node in sim.nodes.values())
