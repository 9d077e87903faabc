"""What daemons reported becomes a network and demands; whose place is fixed stays, whose node is gone has none."""

from __future__ import annotations

import math

import pytest

from ringcast.control.placing import Observation, Report, ScaledSize, SubscriberPlace, TagRate, Way
from ringcast.model.place import Wanted
from ringcast.placement.mesh.live import FRAMING, Live, live
from ringcast.placement.mesh.observed import Framing
from ringcast.placement.model import Link, Node, PlacementError, Problem

ONE = FRAMING.on_the_wire(1000)


def subscriber(
    node: str, every: int = 2, at: str = "publisher", by: str = "", number: int = 7, **wanted: object
) -> SubscriberPlace:  # fmt: skip
    return SubscriberPlace(
        tag="t", node=node, id=number, wanted=Wanted(every=every, **wanted), at=at, by=by, keeper="a"
    )  # fmt: skip


def mesh(*subscribers: SubscriberPlace, rates: dict[str, TagRate] | None = None, **shares: float) -> Observation:
    """a - b - c in a row."""
    ways = {"a": [Way("b", 1, 0.002, 1e9), Way("c", 2, 0.004)], "b": [Way("c", 1, 0.002)], "c": []}
    sent = rates or {"a": TagRate("t", 1000.0, 1000.0)}
    reports = [
        Report(
            node=name, rates=[sent[name]] if name in sent else [], ways=ways[name], cpu_share=shares.get(name),
            sizes=[ScaledSize("t", (2, 2), 77.0)] if name == "c" else [],
        )
        for name in "abc"
    ]  # fmt: skip
    return Observation(nodes=["a", "b", "c"], reports=reports, subscribers=list(subscribers))


def read(found: Observation, network: Problem | None = None) -> Live:
    return live(found, lambda one: one.by in ("", "daemon"), undecided=lambda one: one.by == "", network=network)


def test_hops_make_links_and_rates_make_demands() -> None:
    problem = read(mesh(subscriber("c"), b=0.5)).case.problem
    assert [(link.a, link.b, link.bandwidth, link.latency_s) for link in problem.links] == [
        ("a", "b", 1e9, 0.001), ("b", "c", math.inf, 0.001),
    ]  # fmt: skip
    assert [node.cpu for node in problem.nodes] == [math.inf, 0.5, math.inf]
    (demand,) = problem.demands
    assert (demand.publisher, demand.period_s, demand.bytes, problem.charge) == ("a", 0.001, ONE, "sent")


def test_who_decided_stays_and_who_did_not_is_placed() -> None:
    made = read(
        mesh(subscriber("c"), subscriber("b", at="node:b", by="subscriber"), subscriber("c", every=1, number=8))
    )
    assert made.free == (True, False, False)
    assert made.undecided == [0]
    assert [one.proxy for one in made.case.problem.demands[0].subscribers] == [None, "b", "a"]


def test_whose_node_is_gone_has_no_place() -> None:
    made = read(mesh(subscriber("c", at="node:x", by="daemon"), subscriber("b", at="node:c", by="daemon")))
    assert made.places == (None, 2)
    assert made.undecided == [0]
    assert [one.proxy for one in made.pinned(lambda index: index == 1).problem.demands[0].subscribers] == [None, "c"]


def test_subscribers_beside_the_publisher_load_nothing() -> None:
    assert read(mesh(subscriber("a"))).who == ()


def test_the_busiest_node_of_several_decides() -> None:
    rates = {"a": TagRate("t", 10.0, 1000.0), "b": TagRate("t", 20.0, 1000.0)}
    (demand,) = read(mesh(subscriber("c"), rates=rates)).case.problem.demands
    assert (demand.publisher, demand.period_s) == ("b", 0.05)


def test_a_rate_is_a_factor_and_a_size_is_what_came() -> None:
    made = read(mesh(subscriber("c", every=1, rate_hz=100.0), subscriber("b", every=1, size=(2, 2))))
    by_rate, by_size = made.case.problem.demands[0].subscribers
    assert by_rate.every == 10
    assert by_size.scaled_bytes == FRAMING.on_the_wire(77.0)


def test_heartbeats_in_pauses_are_sent_too() -> None:
    framing = Framing(10, 100, heartbeat_s=1.0)
    assert [framing.on_the_wire(100, pause) for pause in (0.5, 1.5, 3.5, 7.5)] == [110, 120, 130, 140]
    assert framing.on_the_wire(101) == 121


def test_a_declared_network_counts_instead() -> None:
    network = Problem(
        (Node("a"), Node("b"), Node("c"), Node("switch")), tuple(Link(x, "switch", 1e6) for x in "abc"), ()
    )
    problem = read(mesh(subscriber("c")), network).case.problem
    assert [node.host for node in problem.nodes] == [True, True, True, False]
    assert (problem.charge, problem.demands[0].bytes) == ("sent", ONE)
    with pytest.raises(PlacementError, match="'c', and a daemon of that name runs"):
        read(mesh(subscriber("c")), Problem((Node("a"), Node("b")), (Link("a", "b"),), ()))


def test_a_mesh_of_which_no_distances_are_known_is_said() -> None:
    found = mesh(subscriber("c"))
    with pytest.raises(PlacementError, match="no way leads"):
        read(Observation(nodes=found.nodes, reports=found.reports[1:], subscribers=found.subscribers))
