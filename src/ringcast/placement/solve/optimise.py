"""A problem in, a plan out: which form of the program suits, and what to say when there is no plan. Pure.

Every node may be a proxy while the number of places is small enough to hand all of them to the solver, and then the
plan is the optimum. Beyond that only nodes on the way from publisher to subscriber are tried, and the gap is reported.
"""

from __future__ import annotations

import math

from ringcast.placement import delay, plan
from ringcast.placement.case import Case
from ringcast.placement.checks import check
from ringcast.placement.model import Problem
from ringcast.placement.plan import Plan
from ringcast.placement.solve import detours, reasons, regions
from ringcast.placement.solve.onehot import OneHot

MOST_PLACES = 20_000
"""From so many pairs of a subscriber and a node on, only nodes on the way are tried."""
GAP = 0.005
"""What is good enough there."""
ALL_NODES, ON_THE_WAY = "all nodes", "nodes on the way"


def optimise(problem: Problem, limit_s: float = math.inf) -> Plan:
    """Raises PlacementError, SolverMissing, SolverStopped."""
    return optimise_case(Case(check(problem)), limit_s)


def optimise_case(case: Case, limit_s: float = math.inf) -> Plan:
    """The same for a case made before. Raises SolverMissing, SolverStopped."""
    if unreachable := reasons.too_late(case):
        return Plan(case.problem, False, reasons=tuple(unreachable))
    if not case.streams:
        return plan.made(case, ())
    small = len(case.streams) * len(case.problem.nodes) <= MOST_PLACES
    found = _among_all(case, limit_s) if small else _on_the_way(case, limit_s)
    if found is not None:
        return found
    scope = ALL_NODES if small else detours.SCOPE if regions.suits(case.problem) else ON_THE_WAY
    return Plan(case.problem, False, scope=scope, reasons=tuple(reasons.too_full(case, small, limit_s)))


def _among_all(case: Case, limit_s: float) -> Plan | None:
    program = OneHot(case, [delay.candidates(case, stream, case.hosts) for stream in case.streams])
    solution = program.solve(0.0, limit_s)
    if solution is None:
        return None
    return plan.made(case, program.chosen(solution), solution.gap, ALL_NODES)


def _on_the_way(case: Case, limit_s: float) -> Plan | None:
    if regions.suits(case.problem):
        return detours.around(case, GAP, limit_s)
    program = OneHot(case, [delay.candidates(case, stream, case.on_the_way(stream)) for stream in case.streams])
    solution = program.solve(GAP, limit_s)
    if solution is None:
        return None
    return plan.made(case, program.chosen(solution), solution.gap, ON_THE_WAY)
