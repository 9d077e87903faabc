"""The paper's star, Appendix A: its table, and where the proxy belongs by bound."""

from __future__ import annotations

import pytest

from ringcast.lab.placement.networks import SCALED, F, N, T, star
from ringcast.placement.case import Case
from ringcast.placement.solve.optimise import optimise
from ringcast.placement.solve.search import every_place, one_proxy

SLOW = N * T

TABLE = {
    "1": ((2 * SLOW, 2 * SLOW), 4 * SCALED),
    "2": ((2 * T + 2 * SLOW, 2 * T + 2 * SLOW), 4 * F + 4 * SCALED),
    "3": ((2 * T + 2 * SLOW, 2 * T), 4 * F + 2 * SCALED),
    "4": ((2 * T, 2 * T + 2 * SLOW), 4 * F + 2 * SCALED),
    "5": ((T + SLOW, T + SLOW), 2 * F + 2 * SCALED),
}


@pytest.mark.parametrize("turn", one_proxy(Case(star())), ids=lambda turn: turn.proxy)
def test_delays_and_costs_of_every_place(turn):
    delays, cost = TABLE[turn.proxy]
    assert turn.delays_s == pytest.approx(delays)
    assert turn.cost == pytest.approx(cost)


@pytest.mark.parametrize(
    ("bound", "feasible"),
    [
        (T + SLOW - 0.01, ""),
        (2 * T, ""),
        (T + SLOW, "5"),
        (2 * SLOW - 0.01, "5"),
        (2 * SLOW, "15"),
        (2 * T + 2 * SLOW, "12345"),
    ],
)
def test_which_places_meet_the_bound(bound, feasible):
    assert "".join(turn.proxy for turn in one_proxy(Case(star(bound))) if turn.feasible) == feasible


def test_the_order_above_all_bounds():
    cost = {turn.proxy: turn.cost for turn in one_proxy(Case(star(10.0)))}
    assert cost["1"] < cost["5"] < cost["3"] == cost["4"] < cost["2"]


@pytest.mark.parametrize("solve", [lambda problem: every_place(Case(problem)), optimise])
@pytest.mark.parametrize(
    ("bound", "proxies"),
    [(2 * T - 0.01, None), (2 * T, ["4", "3"]), (T + SLOW, ["5", "5"]), (2 * SLOW, ["1", "1"]), (9.0, ["1", "1"])],
)
def test_with_as_many_proxies_as_are_useful(solve, bound, proxies):
    plan = solve(star(bound))
    assert [one.proxy for one in plan.streams] == (proxies or [])
    assert plan.feasible is (proxies is not None)


def test_one_proxy_that_cannot_serve_both_asks_for_a_second():
    plan = optimise(star(2 * T, max_proxies_per_tag=1))
    assert not plan.feasible
    assert [(reason.kind, reason.by) for reason in plan.reasons] == [("proxies", 1.0)]
    assert plan.reasons[0].nearest == ("max_proxies_per_tag = 2",)


def test_a_shared_leg_makes_the_hub_cheaper_when_many_share_it():
    shared = {turn.proxy: turn.cost for turn in one_proxy(Case(star(charge="sent")))}
    assert shared["5"] == pytest.approx(F + 2 * SCALED)
    assert shared["1"] == pytest.approx(4 * SCALED)
