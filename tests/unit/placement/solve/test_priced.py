"""Large networks: what is called a bound is below the optimum over all nodes, and the plan is near it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.lab.placement.instances import large, small
from ringcast.placement import Costs, Demand, Link, Node, Objective, Problem, Subscriber
from ringcast.placement.case import Case
from ringcast.placement.charges import loads, uses
from ringcast.placement.delay import candidates, in_time
from ringcast.placement.solve import optimise, priced, regions, relaxed
from ringcast.placement.solve.program import SolverStopped
from ringcast.placement.solve.search import every_place
from ringcast.placement.solve.ways import Ways

CHARGES = ["unicast", "multicast"]


def by_bandwidth(number: int, charge: str) -> Case:
    problem = small(number, seed=5)
    nodes = tuple(Node(node.name) for node in problem.nodes)
    case = Case(
        dataclasses.replace(
            problem, nodes=nodes, charge=charge, objective=Objective(1, 0), max_proxies_per_tag=None, costs=Costs()
        )
    )
    assert regions.suits(case.problem)
    return case


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(CHARGES))
def test_no_plan_is_below_the_bound(number, charge):
    case = by_bandwidth(number, charge)
    if not all(candidates(case, stream, case.hosts) for stream in case.streams):
        return
    oracle, found = every_place(case), priced.place(case, 0.0)
    if not oracle.feasible:
        assert found.plan is None
        return
    assert found.bound <= oracle.cost * (1 + 1e-9)
    if found.plan is not None:
        assert found.plan.cost >= oracle.cost * (1 - 1e-9)
        assert found.plan.cost <= found.bound * (1 + found.plan.gap) * (1 + 1e-9)
        assert loads(case, found.plan.places).fits(case.problem)
        assert all(in_time(one.delay.total_s, one.deadline_s) for one in found.plan.streams)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(CHARGES), st.integers(0, 10**6))
def test_a_tag_at_prices_is_bounded_over_all_nodes(number, charge, seed):
    case = by_bandwidth(3 * number + 2, charge)
    prices = 1 + np.random.default_rng(seed).exponential(2, len(case.problem.links))
    members = [i for i, stream in enumerate(case.streams) if stream.tag == 0]
    served = relaxed.tag(case, Ways(case), members).serve(prices)
    alone = Case(dataclasses.replace(case.problem, demands=case.problem.demands[:1]), case.routes)
    assert list(loads(alone, [int(place) for place in served.places]).links) == pytest.approx(list(served.loads))
    for places in np.ndindex(*[len(case.hosts)] * len(members)):
        assert served.bound <= float(np.array(loads(alone, places).links) @ prices) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(CHARGES))
def test_a_node_not_worth_trying_does_nothing_that_a_better_one_does_not(number, charge):
    case = by_bandwidth(number, charge)
    ways = Ways(case)
    for index, stream in enumerate(case.streams):
        able = candidates(case, stream, case.hosts)
        assert list(np.flatnonzero(ways.in_time(stream))) == able
        worth = {v: {use.key for use in uses(case, index, v)} for v in np.flatnonzero(ways.worth_trying(stream))}
        # Unicast has one piece of work for a leg, so there the links count.
        if charge == "multicast":
            assert all(any(made <= {use.key for use in uses(case, index, v)} for made in worth.values()) for v in able)
        else:
            links = {v: loads_of(case, index, v) for v in able}
            assert all(any((links[u] <= links[v]).all() for u in worth) for v in able)


def loads_of(case: Case, index: int, place: int) -> np.ndarray:
    found = np.zeros(len(case.problem.links))
    for use in uses(case, index, place):
        np.add.at(found, list(use.links), use.rate)
    return found


def ring(*, capacity: float = math.inf) -> Problem:
    """p - a - b - c - d - p: the routes from p to b and to c part at p, though b and c are neighbours."""
    names = "pabcd"
    links = tuple(Link(x, y, capacity) for x, y in zip(names, names[1:] + "p", strict=True))
    wanted = (Subscriber("left", "b", 2), Subscriber("right", "c", 2))
    return Problem(tuple(map(Node, names)), links, (Demand("t", "p", 0.1, 100, wanted),), charge="multicast")


def test_a_proxy_beside_the_way_is_cheaper_though_no_link_is_full(monkeypatch):
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    # Another that reads all on b: the full stream is there, and from b to c is one link instead of two.
    problem = ring()
    demand = dataclasses.replace(problem.demands[0], subscribers=(Subscriber("all", "b"), Subscriber("right", "c", 2)))
    case = Case(dataclasses.replace(problem, demands=(demand,)))
    plan = optimise.optimise_case(case)
    assert plan.cost == pytest.approx(1000 * 2 + 500)
    assert loads(case, regions.nearest(case)).cost(case.problem) == pytest.approx(1000 * 2 + 500 * 2)
    assert (plan.gap, plan.scope) == (0, "all nodes")
    assert plan.streams[1].path == ("p", "a", "b", "c")


def test_the_method_for_large_networks_is_within_one_percent_of_the_optimum():
    case = Case(large(60, 240, 24, full=2, seed=1))
    found, best = priced.place(case, optimise.GAP), optimise.optimise_case(case)
    assert best.scope == found.plan.scope == "all nodes"
    assert found.bound <= best.cost <= found.plan.cost * (1 + 1e-9)
    assert found.plan.cost <= best.cost * 1.01
    assert 0 < found.plan.gap < 0.01


def test_a_large_network_that_carries_too_little(monkeypatch):
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    plan = optimise.optimise(ring(capacity=100.0))
    assert not plan.feasible
    assert plan.scope == optimise.PART
    assert {reason.kind for reason in plan.reasons} == {"link"}


@pytest.mark.parametrize("charge", ["unicast", "multicast", "sent"])
@pytest.mark.parametrize("capacity", [math.inf, 1500.0])
def test_only_a_node_beside_the_way_is_in_time(monkeypatch, charge, capacity):
    # p - s is one slow hop; by way of q it is two fast ones.
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    links = (Link("p", "s", latency_s=5.0), Link("p", "q", capacity), Link("q", "s", capacity))
    demand = Demand("t", "p", 0.1, 100, (Subscriber("one", "s", 2, deadline_s=1.0), Subscriber("two", "s", 4)))
    plan = optimise.optimise(Problem(tuple(map(Node, "psq")), links, (demand,), charge=charge))
    assert plan.feasible
    assert plan.streams[0].path == ("p", "q", "s")


@pytest.mark.parametrize(
    ("cost", "bound", "gap"),
    [(2.0, 2.0, 0.0), (2.0, 2.0 + 1e-12, 0.0), (3.0, 2.0, 0.5), (1.0, 0.0, math.inf), (math.inf, 2.0, math.inf)],
)
def test_how_far_a_cost_is_above_a_bound(cost, bound, gap):
    assert priced.above(cost, bound) == gap


def test_time_that_is_over_before_there_is_a_plan():
    with pytest.raises(SolverStopped):
        priced.place(Case(large(60, 240, 24, full=2, seed=1)), 0.0, limit_s=0.0)
