from __future__ import annotations

from ringcast.lab.placement import solving
from ringcast.lab.placement.instances import large, small
from ringcast.placement.case import Case
from ringcast.placement.charges import loads
from ringcast.placement.checks import check
from ringcast.placement.solve import regions
from ringcast.placement.solve.optimise import optimise


def test_generators_give_the_same_again_and_good_problems():
    assert small(17) == small(17)
    assert small(17) != small(18)
    assert check(large(40, 80, 4, full=1)) == large(40, 80, 4, full=1)
    kinds = {(small(i).charge, small(i).objective.bandwidth > 0, small(i).objective.cpu > 0, i % 3) for i in range(60)}
    assert len(kinds) == 27


def test_the_large_network_binds():
    problem = large(nodes=60, subscribers=240, tags=24, full=2, seed=1)
    case = Case(problem)
    assert not loads(case, regions.nearest(case)).fits(problem)
    free = optimise(solving._unlimited(problem, capacities=True))
    crowded, added = solving._binding(problem, optimise(problem), free)
    assert crowded >= 1
    assert added > 0.1
