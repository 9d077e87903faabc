"""Hysteresis with a clock that is only a number, explanations, and problems from what a mesh measured."""

from __future__ import annotations

import dataclasses

import pytest

from ringcast.lab.placement.networks import T, chain, star
from ringcast.placement import Demand, Link, Node, PlacementError, Subscriber, explain
from ringcast.placement.case import Case
from ringcast.placement.mesh.observed import Distance, Framing, observed, without
from ringcast.placement.mesh.settling import Settling, wrong
from ringcast.placement.solve.optimise import optimise, optimise_case

PUBLISHER, HUB = 0, 4


@pytest.fixture
def case():
    return Case(star())


@pytest.fixture
def best(case):
    return optimise_case(case)


def settling():
    return Settling(saving=0.1, hold_s=5.0, rest_s=30.0)


def test_the_best_places_stay(case, best):
    assert settling().decide(0.0, case, best.places, best).move is False


def test_a_better_plan_must_last(case, best):
    one, now = settling(), (HUB, HUB)
    first = one.decide(100.0, case, now, best)
    assert (first.move, first.again_s) == (False, 105.0)
    assert one.decide(104.9, case, now, best).move is False
    assert one.decide(105.0, case, now, best).move is True


def test_what_flickers_moves_nothing(case, best):
    one, now = settling(), (HUB, HUB)
    for start in range(0, 60, 6):
        assert one.decide(start, case, now, best).move is False
        assert one.decide(start + 3, case, best.places, best).move is False
    assert one.decide(61, case, now, best).again_s == 66


def test_a_little_better_is_not_enough():
    # A second, tiny subscriber is misplaced; moving it would save little of the whole.
    small = (Subscriber("big", "3", 1), Subscriber("small", "4", 100))
    case = Case(star(demands=(Demand("t", "1", T, 100, small),)))
    best = optimise_case(case)
    now = (best.places[0], HUB)
    decision = Settling(saving=0.5).decide(0.0, case, now, best)
    assert decision.move is False
    assert "less than 50%" in decision.why


def test_moves_are_not_repeated_soon(case, best):
    one = settling()
    one.decide(0.0, case, (HUB, HUB), best)
    assert one.decide(5.0, case, (HUB, HUB), best).move is True
    assert one.decide(6.0, case, (HUB, HUB), best).again_s == 35.0
    assert one.decide(34.0, case, (HUB, HUB), best).move is False
    assert one.decide(35.0, case, (HUB, HUB), best).move is True


@pytest.mark.parametrize("current", [(None, PUBLISHER), (HUB, None)])
def test_a_proxy_without_a_node_is_replaced_at_once(case, best, current):
    one = settling()
    one.decide(0.0, case, (HUB, HUB), best)
    one.decide(5.0, case, (HUB, HUB), best)
    decision = one.decide(5.1, case, current, best)
    assert decision.move is True
    assert "has no node" in decision.why


def test_a_deadline_that_is_missed_moves_at_once():
    case = Case(star(0.4))
    decision = settling().decide(0.0, case, (PUBLISHER, PUBLISHER), optimise_case(case))
    assert decision.move is True
    assert "gets data after 0.6 s, and 0.4 s are allowed" in decision.why


def test_a_capacity_that_is_exceeded_moves_at_once():
    links = (Link("1", "5", bandwidth=1000.0), *star().links[1:])
    case = Case(star(links=links))
    assert wrong(case, (HUB, HUB)) == "a link or a node carries more than it may"
    assert settling().decide(0.0, case, (HUB, HUB), optimise_case(case)).move is True


def test_what_runs_stays_when_no_plan_fits():
    case = Case(star(0.01))
    decision = settling().decide(0.0, case, (PUBLISHER, PUBLISHER), optimise_case(case))
    assert decision.move is False
    assert "no plan fits" in decision.why


def test_the_next_best_when_a_node_is_gone():
    problem = chain(5, Subscriber("s", "n4", 4, deadline_s=4 * T + 3 * 2 * T))
    assert optimise(problem).streams[0].proxy == "n2"
    rest = without(problem, {"n2"})
    assert optimise(rest).streams[0].proxy == "n3"
    assert wrong(Case(rest), (2,)) == "the proxy of subscriber 's' of tag 'chain' has no node"


def test_why_a_proxy_sits_there():
    case = Case(star(0.4, max_proxies_per_tag=1))
    plan = optimise_case(case)
    own, *others = explain.alternatives(case, plan, 0)
    assert (own.node, own.wrong) == ("5", "")
    assert {one.node: bool(one.wrong) for one in others} == {"1": True, "2": True, "3": True, "4": True}
    words = explain.sentence(case, plan, 0)
    assert words.startswith("star, 1: on 5 (2666.67 in all, 0.4 s worst); no other place would do")
    assert "1 would be cheaper (2000) but takes 0.6 s, and 0.4 s are allowed" in words


def test_why_names_the_next_best():
    case = Case(star(0.4))
    assert "next best is 4 (25.0% more)" in explain.sentence(case, optimise_case(case), 0)


def test_a_plan_as_settings():
    case = Case(chain(3, *(Subscriber(f"s{i}", "n2", 2) for i in range(3))))
    plan = dataclasses.replace(optimise_case(case), places=(0, 1, 2))
    assert [at for _, _, at in explain.settings(case, plan)] == ["publisher", "node:n1", "subscriber"]


FRAMING = Framing(header_bytes=90, packet_bytes=1400)


def test_what_a_mesh_measured():
    nodes = [Node(name) for name in "abc"]
    distances = [Distance("a", "b", 1, 0.002, 1e6), Distance("b", "c", 1, 0.004, 2e6), Distance("a", "c", 2, 0.006)]
    demand = Demand("t", "a", T, 1024, (Subscriber("s", "c", 4, scaled_bytes=3000),))
    problem = observed(nodes, distances, [demand], FRAMING)
    assert problem.links == (Link("a", "b", 1e6, 0.001), Link("b", "c", 2e6, 0.002))
    assert problem.charge == "sent"
    assert problem.demands[0].bytes == 1024 + 90
    assert problem.demands[0].subscribers[0].scaled_bytes == 3000 + 3 * 90


def test_machines_without_a_daemon_are_hidden_and_hold_no_proxy():
    demand = Demand("t", "a", T, 100, (Subscriber("s", "b", 2, deadline_s=4.9 * T),))
    problem = observed([Node("a"), Node("b")], [Distance("a", "b", 3, 0.0)], [demand], FRAMING)
    assert [node.name for node in problem.nodes] == ["a", "b", "a~b~1", "a~b~2"]
    plan = optimise(problem)
    assert plan.streams[0].proxy == "b"
    assert plan.streams[0].path == ("a", "a~b~1", "a~b~2", "b")


def test_a_longer_way_is_added_only_where_needed():
    distances = [Distance("a", "c", 3, 0.0), Distance("a", "b", 1, 0.0), Distance("b", "c", 2, 0.0)]
    problem = observed([Node(name) for name in "abc"], distances, [], FRAMING)
    assert [(link.a, link.b) for link in problem.links] == [("a", "b"), ("b", "b~c~1"), ("b~c~1", "c")]


def test_a_mesh_in_two_pieces_is_refused():
    with pytest.raises(PlacementError, match="no way leads"):
        observed([Node("a"), Node("b")], [], [], FRAMING)


def test_what_nobody_may_move_does_not_hide_a_saving():
    free, fixed = star().demands[0], Subscriber("heavy", "3", proxy="3")
    heavy = Demand("heavy", "1", T / 1000, 100, (fixed,))
    case = Case(dataclasses.replace(star(), demands=(free, heavy)))
    best, one = optimise_case(case), settling()
    now = (HUB, HUB, best.places[2])
    assert best.places[:2] != now[:2]
    one.decide(0.0, case, now, best)
    assert one.decide(5.0, case, now, best).move is True
