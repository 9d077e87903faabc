"""Infeasible is an answer: who, by how much, and what would fit. What is said to fit is tried."""

from __future__ import annotations

import dataclasses

import pytest

from ringcast.lab.placement.networks import F, T, chain, star
from ringcast.placement import Costs, Link, Node, Subscriber
from ringcast.placement.model import changed
from ringcast.placement.solve import optimise
from ringcast.placement.solve.optimise import optimise as solve


def test_a_deadline_that_no_place_meets():
    problem = chain(4, Subscriber("s", "n3", 2, deadline_s=0.25))
    (reason,) = solve(problem).reasons
    assert (reason.kind, reason.name, reason.unit) == ("subscriber", "s", "s")
    assert reason.by == pytest.approx(0.05)
    assert reason.nearest[0] == "a deadline of 0.3 s (proxy on n3)"
    assert solve(changed(problem, lambda _: {"deadline_s": 0.3})).feasible
    assert "a message every 0.0833333 s" in reason.nearest[1]


def test_only_the_late_one_is_named():
    plan = solve(chain(4, Subscriber("far", "n3", deadline_s=0.2), Subscriber("near", "n1", deadline_s=0.2)))
    assert [reason.name for reason in plan.reasons] == ["far"]


def test_a_link_that_is_too_narrow_and_a_factor_that_fits():
    links = (Link("n0", "n1", bandwidth=F / 5), Link("n1", "n2"))
    problem = chain(3, Subscriber("s", "n2", 2), links=links)
    (reason,) = solve(problem).reasons
    assert (reason.kind, reason.name, reason.unit) == ("link", "n0-n1", "bytes/s")
    assert reason.by == pytest.approx(F / 2 - F / 5)
    assert reason.nearest == (f"{F / 2:g} bytes/s on link n0-n1", "every = 6 for subscriber 's' of tag 'chain'")
    assert solve(changed(problem, lambda _: {"every": 6})).feasible
    assert not solve(changed(problem, lambda _: {"every": 4})).feasible


def test_a_longer_deadline_that_fits():
    # In time only from n2, and the full stream does not pass the first link.
    links = (Link("n0", "n1", bandwidth=F / 2), Link("n1", "n2"))
    problem = chain(3, Subscriber("s", "n2", 4, deadline_s=2 * T), links=links)
    (reason,) = solve(problem).reasons
    assert reason.kind == "link"
    assert "a deadline of 0.8 s instead of 0.2 for subscriber 's' of tag 'chain'" in reason.nearest
    assert solve(changed(problem, lambda _: {"deadline_s": 0.8})).feasible


def test_a_node_that_may_not_spend_enough():
    nodes = (Node("n0", 0.05), Node("n1"))
    problem = dataclasses.replace(chain(2, Subscriber("s", "n1"), costs=Costs(in_s=0.01, out_s=0.01)), nodes=nodes)
    (reason,) = solve(problem).reasons
    assert (reason.kind, reason.name) == ("node", "n0")
    assert reason.by == pytest.approx(0.05)


def test_a_link_that_carries_nothing():
    problem = chain(2, Subscriber("s", "n1", 2), links=(Link("n0", "n1", bandwidth=0),))
    (reason,) = solve(problem).reasons
    assert reason.by == pytest.approx(F / 2)


def test_large_networks_say_so_too(monkeypatch):
    monkeypatch.setattr(optimise, "MOST_PLACES", 0)
    for charge in ("multicast", "sent"):
        problem = star(charge=charge, links=tuple(Link(str(i), "5", bandwidth=F / 10) for i in range(1, 5)))
        plan = solve(problem)
        assert not plan.feasible
        assert "1-5" in {reason.name for reason in plan.reasons}


def test_what_is_printed_when_nothing_fits():
    document = solve(chain(4, Subscriber("s", "n3", deadline_s=0.1))).document()
    assert document["feasible"] is False
    assert document["cost"] is document["gap"] is None
    assert document["streams"] == document["links"] == document["nodes"] == []
    assert document["reasons"][0]["name"] == "s"


def test_without_the_solver_it_says_what_to_install(monkeypatch):
    import sys

    from ringcast.placement.solve.program import SolverMissing

    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(SolverMissing, match=r"pip install 'ringcast\[placement\]'"):
        solve(dataclasses.replace(star()))
