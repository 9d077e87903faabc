"""The integer program that paper 001 prints (2.4.2), solved as printed: its optimum is no place at all.

X Y Z in binary is the node of the proxy, 0 to 6; 111 stands for none, costs nothing and meets every bound. Products
are replaced by a = XY, b = YZ, c = ZX, d = XYZ, of which a <= X and b <= Y are missing, and the last term of the
objective is printed with (a + d), where XY(1 - Z) is (a - d).
"""

from __future__ import annotations

import math

import pytest

from ringcast.lab.placement.networks import chain
from ringcast.placement import Subscriber
from ringcast.placement.solve.optimise import optimise
from ringcast.placement.solve.program import Program

FULL, SCALED = 8.0, 2.0
COSTS = [p * FULL + (6 - p) * SCALED for p in range(7)]
DELAYS = [p * 1.0 + (6 - p) * 4.0 for p in range(7)]


def codes(sign_of_d: int) -> list[dict[str, float]]:
    """For nodes 0 to 6 the linear form that is 1 when XYZ is that node."""
    return [
        {"1": 1, "a": 1, "b": 1, "c": 1, "X": -1, "Y": -1, "Z": -1, "d": -1},
        {"Z": 1, "d": 1, "c": -1, "b": -1},
        {"Y": 1, "d": 1, "a": -1, "b": -1},
        {"b": 1, "d": -1},
        {"X": 1, "a": -1, "c": -1, "d": 1},
        {"c": 1, "d": -1},
        {"a": 1, "d": sign_of_d},
    ]


def weighted(weights: list[float], sign_of_d: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for weight, form in zip(weights, codes(sign_of_d), strict=True):
        for name, factor in form.items():
            found[name] = found.get(name, 0.0) + weight * factor
    return found


def printed(bound: float, sign_of_d: int, *, repaired: bool = False) -> tuple[float, dict[str, float]] | None:
    objective = weighted(COSTS, sign_of_d)
    program = Program()
    columns = {name: program.variable(objective.get(name, 0.0), whole=name in "XYZ") for name in "XYZabcd"}
    program.offset = objective["1"]
    delay = weighted(DELAYS, sign_of_d)
    program.row(-math.inf, bound - delay["1"], [(columns[name], delay.get(name, 0.0)) for name in columns])
    for small, large in ("dX", "aY", "bZ", "cX", "cZ", "dZ", "da", *(("aX", "bY") if repaired else ())):
        program.row(-math.inf, 0.0, [(columns[small], 1.0), (columns[large], -1.0)])
    for product, one, other in ("aXY", "bYZ", "cXZ", "dZa"):
        program.row(-math.inf, 1.0, [(columns[product], -1.0), (columns[one], 1.0), (columns[other], 1.0)])
    if repaired:
        # 111 is no node.
        program.row(-math.inf, 2.0, [(columns[name], 1.0) for name in "XYZ"])
    solution = program.solve()
    return solution and (solution.cost, {name: solution.values[column] for name, column in columns.items()})


def ours(bound: float):
    subscriber = Subscriber("San Diego", "n6", 4, deadline_s=bound * 0.1)
    return optimise(chain(7, subscriber))


@pytest.mark.parametrize("bound", [3.0, 12.0, 24.0])
def test_the_optimum_of_the_paper_is_no_place(bound):
    cost, values = printed(bound, -1)
    assert cost == pytest.approx(0.0)
    assert [round(values[name]) for name in "XYZ"] == [1, 1, 1]


def test_with_the_printed_sign_no_place_costs_most():
    form = weighted(COSTS, +1)
    assert sum(form.values()) == pytest.approx(12 * FULL)


@pytest.mark.parametrize("bound", [6.0, 10.0, 12.0, 20.0, 24.0])
def test_repaired_it_agrees_with_ours(bound):
    cost, values = printed(bound, -1, repaired=True)
    plan = ours(bound)
    place = int("".join(str(round(values[name])) for name in "XYZ"), 2)
    assert plan.streams[0].proxy == f"n{place}"
    assert plan.cost / plan.links[-1] == pytest.approx(cost / (FULL if place == 6 else SCALED))


def test_a_bound_that_nothing_meets_is_infeasible():
    assert printed(5.9, -1, repaired=True) is None
    assert not ours(5.9).feasible
