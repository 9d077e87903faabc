"""The integer program against the oracle, large networks, and what both forms must agree in."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.lab.placement.instances import large, small
from ringcast.lab.placement.networks import F, T, chain, star, vbns
from ringcast.placement import Costs, Demand, Link, Node, Objective, Problem, Subscriber
from ringcast.placement.case import Case
from ringcast.placement.charges import loads
from ringcast.placement.delay import candidates, in_time
from ringcast.placement.solve import optimise, regions
from ringcast.placement.solve.onehot import OneHot
from ringcast.placement.solve.search import TooMany, every_place


def agree(problem: Problem) -> None:
    case = Case(problem)
    oracle, plan = every_place(case), optimise.optimise_case(case)
    assert plan.feasible == oracle.feasible
    if oracle.feasible:
        assert plan.cost == pytest.approx(oracle.cost, rel=1e-7, abs=1e-9)
        assert plan.gap == 0
        for one in plan.streams:
            assert in_time(one.delay.total_s, one.deadline_s)
        assert loads(case, plan.places).fits(problem)
    else:
        assert plan.reasons


@pytest.mark.parametrize("number", range(90))
def test_the_optimum_is_the_oracles(number):
    agree(small(number))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2), st.sampled_from([None, 1, 2]))
def test_the_optimum_is_the_oracles_in_drawn_networks(number, shift, most):
    agree(dataclasses.replace(small(3 * (number // 3) + shift, seed=7), max_proxies_per_tag=most))


def test_small_networks_bind_and_fail():
    verdicts = [every_place(Case(small(number))).feasible for number in range(90)]
    assert 5 <= verdicts.count(False) <= 45
    bound = [every_place(Case(unbound(small(number)))).cost for number in range(0, 90, 3)]
    held = [every_place(Case(small(number))) for number in range(0, 90, 3)]
    assert sum(plan.feasible and plan.cost > free * (1 + 1e-9) for plan, free in zip(held, bound, strict=True)) >= 3


def unbound(problem: Problem) -> Problem:
    return dataclasses.replace(
        problem,
        nodes=tuple(dataclasses.replace(node, cpu=math.inf) for node in problem.nodes),
        links=tuple(dataclasses.replace(link, bandwidth=math.inf) for link in problem.links),
    )


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["unicast", "multicast"]))
def test_without_a_solver_the_places_on_the_way_are_the_cheapest(number, charge):
    problem = dataclasses.replace(
        unbound(small(number, seed=3)), charge=charge, objective=Objective(1, 0), max_proxies_per_tag=None
    )
    case = Case(problem)
    choices = [candidates(case, stream, case.on_the_way(stream)) for stream in case.streams]
    if not all(choices):
        return
    program = OneHot(case, choices)
    assert loads(case, regions.nearest(case)).cost(problem) == pytest.approx(program.solve().cost, rel=1e-7, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["unicast", "multicast"]))
def test_on_the_way_every_link_has_its_least_load_at_once(number, charge):
    problem = dataclasses.replace(
        unbound(small(number, seed=4)), charge=charge, objective=Objective(1, 0), max_proxies_per_tag=None
    )
    case = Case(problem)
    choices = [candidates(case, stream, case.on_the_way(stream)) for stream in case.streams]
    if not all(choices):
        return
    least = loads(case, regions.nearest(case)).links
    for others in zip(*(choice * 4 for choice in choices), strict=False):
        assert all(a <= b * (1 + 1e-9) for a, b in zip(least, loads(case, others).links, strict=True))


def test_a_large_network_goes_round_full_links(monkeypatch):
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    problem = large(nodes=60, subscribers=240, tags=24, full=2, seed=1)
    case = Case(problem)
    before = loads(case, regions.nearest(case))
    assert not before.fits(problem)
    plan = optimise.optimise_case(case)
    assert plan.feasible
    assert plan.gap < 0.01
    assert plan.scope == "all nodes"
    assert any(place not in case.on_the_way(stream) for stream, place in zip(case.streams, plan.places, strict=True))
    assert loads(case, plan.places).fits(problem)
    assert all(in_time(one.delay.total_s, one.deadline_s) for one in plan.streams)


@pytest.mark.parametrize("charge", ["unicast", "multicast", "sent"])
@pytest.mark.parametrize("objective", [Objective(1, 0), Objective(0, 1), Objective(1, 1e4)])
def test_many_subscribers_are_placed_on_the_way(monkeypatch, charge, objective):
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    problem = dataclasses.replace(
        large(nodes=30, subscribers=60, tags=4, full=0),
        charge=charge, objective=objective, costs=Costs(1e-5, 1e-5, 1e-6),
    )  # fmt: skip
    wide = dataclasses.replace(unbound(problem), nodes=tuple(Node(node.name, 0.5) for node in problem.nodes))
    case = Case(wide)
    plan = optimise.optimise_case(case)
    assert plan.feasible
    assert plan.gap <= optimise.GAP
    assert loads(case, plan.places).fits(wide)


@pytest.mark.parametrize("subscribers", [1, 2, 5, 10])
def test_vbns_scales_on_the_way(subscribers):
    plan = optimise.optimise(vbns(subscribers))
    assert plan.feasible
    assert plan.streams[0].proxy == "n4"


def test_a_proxy_leaves_a_node_that_may_not_spend_more():
    costs = Costs(in_s=0.001, out_s=0.001, scale_s=0.01)
    problem = chain(3, Subscriber("s", "n2", 2), costs=costs)
    assert optimise.optimise(problem).streams[0].proxy == "n0"
    limited = dataclasses.replace(problem, nodes=(Node("n0", 0.02), *problem.nodes[1:]))
    assert optimise.optimise(limited).streams[0].proxy == "n1"


def test_a_proxy_beside_the_way_is_found_where_the_way_is_too_busy():
    # a - b - c with d beside b: a and c may spend little, b nothing more.
    nodes = (Node("a", 0.011), Node("b", 0.0), Node("c", 0.006), Node("d"))
    links = (Link("a", "b"), Link("b", "c"), Link("b", "d"))
    demand = Demand("t", "a", T, 100, (Subscriber("s", "c", 2),))
    plan = optimise.optimise(Problem(nodes, links, (demand,), Costs(0.001, 0.001, 0.01)))
    assert plan.streams[0].proxy == "d"
    assert plan.streams[0].path == ("a", "b", "d", "b", "c")


def test_a_factor_one_proxy_sits_where_it_fits():
    problem = chain(3, Subscriber("s", "n2", deadline_s=2 * T))
    plan = optimise.optimise(problem)
    assert plan.cost == pytest.approx(2 * F)
    assert plan.streams[0].delay.total_s == pytest.approx(2 * T)


@pytest.mark.parametrize("size", [1, 1e5, 1e9])
@pytest.mark.parametrize("capacity", [0.0, 1e-9, 0.001])
@pytest.mark.parametrize("charge", ["unicast", "multicast", "sent"])
def test_a_stream_of_any_size_goes_round_a_link_that_carries_next_to_nothing(size, capacity, charge):
    links = (Link("p", "s", capacity), Link("p", "q"), Link("q", "s"))
    demand = Demand("t", "p", T, size, (Subscriber("one", "s", 2),))
    problem = Problem(tuple(map(Node, "psq")), links, (demand,), charge=charge)
    assert optimise.optimise(problem).streams[0].path == ("p", "q", "s")
    (reason,) = optimise.optimise(dataclasses.replace(problem, nodes=problem.nodes[:2], links=links[:1])).reasons
    assert (reason.kind, reason.name) == ("link", "p-s")
    assert reason.by == pytest.approx(size / T / 2 - capacity)


def test_nobody_subscribes():
    plan = optimise.optimise(chain(3))
    assert plan.feasible
    assert plan.cost == 0


def test_one_node():
    plan = optimise.optimise(chain(1, Subscriber("s", "n0", 2, deadline_s=1e-3)))
    assert plan.feasible
    assert plan.streams[0].path == ("n0",)


def test_the_oracle_refuses_what_would_take_for_ever():
    with pytest.raises(TooMany):
        every_place(Case(vbns(20, hops_in_time=100)))


def test_equal_subscribers_share_where_the_mesh_shares():
    twice = tuple(Subscriber(f"s{i}", "3", 3) for i in range(2))
    problem = star(charge="sent", demands=(Demand("t", "1", T, 100, twice),))
    assert optimise.optimise(problem).cost == pytest.approx(2 * F / 3)
    assert optimise.optimise(dataclasses.replace(problem, charge="unicast")).cost == pytest.approx(4 * F / 3)
