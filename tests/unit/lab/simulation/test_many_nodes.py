"""Many simulated nodes find each other, notice deaths and agree again after partitions."""

from __future__ import annotations

import pytest
from simulated_mesh import (
    assert_quiet,
    assert_same_view,
    mesh,
    publisher,
    publisher_row,
    seen,
    settle,
    tag,
)

from ringcast.control.peering import MAX_FRAME_BYTES
from ringcast.daemon.mesh.core.events import NodeDown, NodeRestarted
from ringcast.daemon.table.pages import PAGE_BYTES
from ringcast.lab.simulation.agreement import measure, rows
from ringcast.lab.simulation.many_nodes import MeshSimulation, SimulatedNode


@pytest.mark.parametrize("count", [2, 10, 16, 17, 40])
def test_nodes_that_know_one_find_all(count: int) -> None:
    sim = mesh(count)
    assert_same_view(sim)
    for node in sim.running():
        assert len(node.cluster.membership.names.holders) == count - 1
    assert_quiet(sim)


def test_a_chain_of_seeds_suffices() -> None:
    sim = MeshSimulation(seed=3)
    for number in range(12):
        sim.start(f"n{number}", [f"n{number - 1}"] if number else [])
    settle(sim)


def test_a_change_reaches_ten_nodes_in_one_step() -> None:
    sim = mesh(10, latency_ms=(1.0, 1.0))
    before_ns = sim.now_ns
    sim.change("n3", tag("lab/temp"))
    sim.run(0.0011)
    assert sim.agree()
    assert_same_view(sim)
    assert sim.nodes["n7"].table.tag("lab/temp") is not None
    assert sim.now_ns - before_ns == 1_100_000


@pytest.mark.parametrize("silently", [False, True])
@pytest.mark.parametrize("count", [2, 5, 30])
def test_a_killed_node_is_noticed_and_its_rows_withdrawn_until_it_returns(count: int, silently: bool) -> None:
    sim = mesh(count)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1", silently=silently)
    settle(sim)
    others = sim.running()
    assert all(not node.table.publishers("lab/temp") for node in others)
    assert all(seen(node, NodeDown) for node in others)
    sim.start("n1", ["n0"])
    settle(sim)
    assert all(not node.table.publishers("lab/temp") for node in sim.running()), "that was its earlier life"
    sim.change("n1", publisher(7, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [7] for node in sim.running())
    assert_same_view(sim)


def test_a_node_that_says_goodbye_is_gone_at_once() -> None:
    sim = mesh(6, latency_ms=(1.0, 1.0))
    sim.stop("n2")
    sim.run(0.01)
    assert sim.agree()
    assert len(sim.running()) == 5


def test_a_node_that_restarts_at_once_is_a_new_one() -> None:
    sim = mesh(5)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1")
    sim.start("n1", ["n0"])
    settle(sim)
    assert all(not node.table.publishers("lab/temp") for node in sim.running())
    assert any(seen(node, NodeRestarted) or seen(node, NodeDown) for node in sim.running())


@pytest.mark.parametrize("clock_s", [0, -3600])
def test_a_node_that_returns_with_its_old_number_outlives_what_is_known_of_it(clock_s: int) -> None:
    sim = mesh(4)
    for number in range(3):
        sim.change("n1", publisher(number, "lab/temp"))
    settle(sim)
    sim.kill("n1", silently=True)
    sim.nodes["n1"].skew_ns += clock_s * 10**9
    sim.start("n1", ["n0"], old_identity=True)
    sim.change("n1", publisher(9, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [9] for node in sim.running())


def test_a_clock_set_back_by_an_hour_between_two_lives_changes_nothing() -> None:
    sim = mesh(4)
    sim.change("n1", publisher(1, "lab/temp"))
    settle(sim)
    sim.kill("n1")
    sim.nodes["n1"].skew_ns -= 3600 * 10**9
    sim.start("n1", ["n0"])
    sim.change("n1", publisher(2, "lab/temp"))
    settle(sim)
    assert all([p.info.id for p in node.table.publishers("lab/temp")] == [2] for node in sim.running())


@pytest.mark.parametrize("count", [6, 40])
def test_a_partition_heals_by_itself(count: int) -> None:
    sim = mesh(count)
    half = [f"n{number}" for number in range(count // 2)]
    sim.change("n0", publisher(1, "lab/a"))
    sim.change(f"n{count - 1}", publisher(1, "lab/b"))
    settle(sim)
    sim.partition(half)
    for name in half:
        sim.nodes[name].side = 1
    sim.run(60.0)
    assert not sim.nodes["n0"].table.publishers("lab/b")
    assert not sim.nodes[f"n{count - 1}"].table.publishers("lab/a")
    sim.change("n0", publisher(2, "lab/a"))
    sim.heal()
    settle(sim)
    for node in sim.running():
        assert len(node.table.publishers("lab/a")) == 2
        assert len(node.table.publishers("lab/b")) == 1
    assert_same_view(sim)
    assert_quiet(sim)


def test_a_partition_heals_without_any_seed() -> None:
    sim = mesh(3)
    for node in sim.running():
        node.cluster.membership._calls._seeds.clear()
    sim.partition(["n0"], ["n1"], ["n2"])
    sim.run(60.0)
    assert [len(node.cluster.membership.roster) for node in sim.running()] == [1, 1, 1]
    sim.heal()
    settle(sim)


@pytest.mark.parametrize("count", [4, 24])
def test_what_was_lost_on_the_way_is_found_by_comparing(count: int) -> None:
    sim = mesh(count)
    sim.loss = 1.0
    sim.change("n1", publisher(1, "lab/temp"))
    sim.run(0.01)
    sim.loss = 0.0
    assert not sim.agree()
    settle(sim)
    assert not any(seen(node, NodeDown) for node in sim.running())
    assert_same_view(sim)


def test_more_rows_than_a_page_arrive_in_pages() -> None:
    sim = mesh(3)
    for number in range(1, 700):
        sim.nodes["n1"].table.put(publisher_row("n1", number))
    sim.change("n1", publisher(700, "lab/temp"))
    sim.start("n3", ["n0"])
    settle(sim)
    assert len(sim.nodes["n3"].table.publishers("lab/temp")) == 700
    assert max(node.largest_bytes for node in sim.running()) <= PAGE_BYTES + 1024


def test_a_thousand_nodes_are_measured_by_the_same_code() -> None:
    result = measure(60)
    assert result.change_rounds >= 2
    assert result.largest_bytes <= MAX_FRAME_BYTES
    assert [row["met"] for row in rows(result)].count(None) == 7


def test_a_cut_between_two_nodes_only_harms_nobody() -> None:
    sim = mesh(5)
    down = {name: len(seen(node, NodeDown)) for name, node in sim.nodes.items()}
    blocked = {sim.nodes["n1"], sim.nodes["n2"]}
    plain = sim._send

    def send(node: SimulatedNode, number: int, message: object) -> None:
        pipe = node.links.get(number)
        if pipe is None or {node, pipe.to} != blocked:
            plain(node, number, message)  # type: ignore[arg-type]

    sim._send = send  # type: ignore[method-assign]
    sim.run(30.0)
    assert sim.agree()
    assert {name: len(seen(node, NodeDown)) for name, node in sim.nodes.items()} == down
