"""Nodes that share what they know of each other: the same as others do, as long as nobody comes or goes."""

from __future__ import annotations

import pytest

from ringcast.daemon.mesh.core.timing import Timing
from ringcast.lab.simulation.agreement import measure, spread
from ringcast.lab.simulation.many_nodes import MeshSimulation
from ringcast.lab.simulation.settled import settle

NAMES = [f"n{number}" for number in range(60)]


@pytest.fixture
def sim() -> MeshSimulation:
    sim = MeshSimulation(seed=3, timing=Timing())
    settle(sim, NAMES)
    return sim


def test_all_are_linked_as_a_mesh_of_that_size_is(sim: MeshSimulation) -> None:
    assert sim.agree()
    for node in sim.running():
        membership = node.cluster.membership
        assert sorted(membership.links.peers()) == membership.roster.neighbours()


def test_they_stay_settled_while_nothing_happens(sim: MeshSimulation) -> None:
    sim.run(10.0)
    assert sim.agree()


def test_a_tag_spreads_as_among_nodes_that_found_each_other_by_themselves() -> None:
    alike, found = spread(60, seed=2), measure(60, seed=2, brief=True)
    assert abs(alike.rounds - found.change_rounds) <= 2
    assert alike.bytes == pytest.approx(found.change_bytes, rel=0.5)


def test_one_that_dies_is_refused_and_does_not_spoil_what_is_shared(sim: MeshSimulation) -> None:
    sim.kill(NAMES[7])
    with pytest.raises(RuntimeError, match="simulate that with fewer nodes"):
        sim.run(20.0)
