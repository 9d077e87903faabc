"""A problem in, a plan out: which form of the program suits, and what to say when there is no plan. Pure.

Every node may be a proxy while the number of places is small enough to hand all of them to the solver, and then the
plan is the optimum. Beyond that, where bandwidth alone decides, the plan is near a bound that holds for all nodes
(`priced`), and the gap to it is reported. For other costs only nodes on the way from publisher to subscriber are tried,
and the gap is to the best of those.
"""

from __future__ import annotations

import dataclasses
import math

from ringcast.placement import delay, plan
from ringcast.placement.case import Case
from ringcast.placement.checks import check
from ringcast.placement.model import Problem
from ringcast.placement.plan import Plan
from ringcast.placement.solve import detours, priced, reasons, regions
from ringcast.placement.solve.onehot import OneHot

MOST_PLACES = 20_000
"""From so many pairs of a subscriber and a node on, a network is large."""
GAP = 0.005
"""What is good enough there."""
ALL_NODES, ON_THE_WAY = "all nodes", "nodes on the way"
PART = "the cheapest nodes for each tag, and nodes near full links"
"""Where a large network was searched in vain."""


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
    found = _among_all(case, limit_s) if small else _large(case, limit_s)
    if found is not None:
        return found
    scope = ALL_NODES if small else PART if regions.suits(case.problem) else ON_THE_WAY
    return Plan(case.problem, False, scope=scope, reasons=tuple(reasons.too_full(case, small, limit_s)))


def _among_all(case: Case, limit_s: float) -> Plan | None:
    program = OneHot(case, [delay.candidates(case, stream, case.hosts) for stream in case.streams])
    solution = program.solve(0.0, limit_s)
    if solution is None:
        return None
    return plan.made(case, program.chosen(solution), solution.gap, ALL_NODES)


def _large(case: Case, limit_s: float) -> Plan | None:
    if not regions.suits(case.problem):
        program = OneHot(case, [delay.near_the_way(case, stream) for stream in case.streams])
        solution = program.solve(GAP, limit_s)
        return None if solution is None else plan.made(case, program.chosen(solution), solution.gap, ON_THE_WAY)
    found = priced.place(case, GAP, limit_s)
    if found.plan is not None:
        return found.plan
    places = detours.around(case, GAP, limit_s)
    if places is None:
        return None
    made = plan.made(case, places)
    return dataclasses.replace(made, gap=priced.above(made.cost, found.bound))
