"""How fast and how good: the vBNS of Table 3, a large network whose links bind, the optimum beside the oracle."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time

from ringcast.lab.measuring import reference
from ringcast.lab.measuring.report import Findings, Picture, Series, Steps, Table
from ringcast.lab.measuring.rows import at_least, at_most, figure
from ringcast.lab.placement.instances import large, small
from ringcast.lab.placement.networks import vbns
from ringcast.placement import charges
from ringcast.placement.case import Case
from ringcast.placement.model import Problem, changed
from ringcast.placement.solve import detours, regions
from ringcast.placement.solve.onehot import OneHot
from ringcast.placement.solve.optimise import optimise, optimise_case
from ringcast.placement.solve.search import every_place

SUBSCRIBERS = (1, 2, 5, 10)
SMALL = 1000
MS = 1e3
_LIMIT_S = 120.0


def vbns_times(quick: bool, steps: Steps) -> Findings:
    """From the problem to the plan; the solver's library is loaded before."""
    steps.expect(1)
    steps.step("vBNS")
    findings, cells, points = Findings(), [], []
    optimise(vbns(1))
    for subscribers in SUBSCRIBERS:
        problem = vbns(subscribers)
        taken = [_timed(problem) for _ in range(9 if quick else 49)]
        ours, paper = statistics.median(taken), _paper_s(subscribers)
        findings.rows.append(
            at_most(
                f"vBNS, 1 publisher, {subscribers} subscriber(s): time to the optimum",
                ours * MS,
                "ms",
                10.0,
                paper * MS,
            )
        )
        cells.append([str(subscribers), f"{ours * MS:.2f}", f"{min(taken) * MS:.2f}", f"{paper * MS:g}"])
        points.append((subscribers, ours * MS, paper * MS))
    heads = ["subscribers", "median (ms)", "fastest (ms)", "paper, CPLEX, both times (ms)"]
    findings.tables.append(Table("Table 3: solving the vBNS", heads, cells))
    findings.pictures.append(
        Picture("vbns", "Time to the optimum on the vBNS", "subscribers", "here (ms)",
                [Series("here", [(float(n), y) for n, y, _ in points]),
                 Series("paper (CPLEX)", [(float(n), y) for n, _, y in points], paper=True)],
                paper_y="paper: presolve + solve (ms)")
    )  # fmt: skip
    return findings


def large_network(steps: Steps) -> Findings:
    """The same size with --quick, because that size is asked for."""
    steps.expect(1)
    steps.step("500 nodes, 10,000 subscribers")
    problem = large()
    free = Case(problem)
    places = regions.nearest(free)
    before = charges.loads(free, places)
    crowded = sum(
        not charges.within(load, link.bandwidth) for load, link in zip(before.links, problem.links, strict=True)
    )
    began = time.perf_counter()
    plan = optimise(problem, _LIMIT_S)
    took = time.perf_counter() - began
    name = "500 nodes, 10,000 subscribers, multicast, binding links"
    moved = sum(a != b for a, b in zip(places, plan.places, strict=True)) if plan.feasible else 0
    rows = [
        at_most(f"{name}: time to the plan", took, "s", 15.0),
        at_most(f"{name}: gap", plan.gap * 100 if plan.feasible else None, "%", 1.0),
        figure(f"{name}: links that the plan without capacities overloads", crowded, "links"),
        figure(f"{name}: proxies that move because of them", moved, "proxies"),
        figure(f"{name}: what they add to the cost of the tags that pass them", _dearer(free, places), "%"),
    ]
    note = f"the large network's gap holds among {plan.scope}; see docs/placement.md"
    return Findings(rows, [], [], [note])


def scope(steps: Steps) -> Findings:
    """What it costs to try only places on the way and near it, in a network small enough to try all nodes too."""
    steps.expect(1)
    steps.step("60 nodes, 240 subscribers")
    case = Case(large(60, 240, 24, full=2, seed=1))
    near, all_nodes = detours.around(case, 0.0), optimise_case(case, _LIMIT_S)
    over = 100 * (near.cost / all_nodes.cost - 1) if near and all_nodes.feasible else None
    name = "60 nodes, 240 subscribers, multicast, binding links: places as in large networks against all nodes"
    return Findings([figure(f"{name}: dearer by", over, "%")])


def oracle(steps: Steps, number: int = SMALL) -> Findings:
    """Small networks, all places tried. A third with capacities, a third with deadlines that bind."""
    steps.expect(10)
    equal = failing = tight = late = 0
    for i in range(number):
        if i % (number // 10) == 0:
            steps.step(f"oracle, {i} of {number}")
        problem = small(i)
        case = Case(problem)
        best, plan = every_place(case), optimise_case(case)
        equal += best.feasible == plan.feasible and (
            not best.feasible or math.isclose(best.cost, plan.cost, rel_tol=1e-7, abs_tol=1e-9)
        )
        failing += not best.feasible
        # A limit binds when the oracle finds a cheaper plan without it, or a plan at all.
        if i % 3 < 2:
            free = every_place(Case(_unlimited(problem, capacities=i % 3 == 0)))
            binds = not best.feasible or best.cost > free.cost * (1 + 1e-9)
            tight, late = tight + (binds and i % 3 == 0), late + (binds and i % 3 == 1)
    name = f"{number:,} small networks"
    return Findings(
        [
            at_least(f"{name}, all costs and charges: verdict and optimum as the oracle's", equal, "networks", number),
            figure(f"{name}: infeasible", failing, "networks"),
            figure(f"{name}: where capacities bind, of {number // 3 + 1} that have them", tight, "networks"),
            figure(f"{name}: where deadlines bind, of {number // 3} that have them", late, "networks"),
        ]
    )


def _dearer(case: Case, places: list[int]) -> float | None:
    """By how many percent the tags that pass a full link cost more because it is full; 0 when nothing binds."""
    rest, _, choices = detours.crowded(case, places)
    wide = tuple(dataclasses.replace(link, bandwidth=math.inf) for link in rest.problem.links)
    without = OneHot(Case(dataclasses.replace(rest.problem, links=wide), case.routes), choices).solve()
    held = OneHot(rest, choices).solve()
    return 100 * (held.cost / without.cost - 1) if held and without else None


def _timed(problem: Problem) -> float:
    began = time.perf_counter()
    plan = optimise(problem)
    took = time.perf_counter() - began
    return took if plan.feasible else math.inf


def _paper_s(subscribers: int) -> float:
    row = f"vBNS 7 nodes (1 pub {subscribers} sub)"
    parts = (reference.figure("3", row, part, reference.PUSH_PULL_QOS) for part in ("presolve", "solve"))
    return math.fsum(part or 0.0 for part in parts)


def _unlimited(problem: Problem, *, capacities: bool) -> Problem:
    if not capacities:
        return changed(problem, lambda _: {"deadline_s": math.inf})
    return dataclasses.replace(
        problem,
        nodes=tuple(dataclasses.replace(node, cpu=math.inf) for node in problem.nodes),
        links=tuple(dataclasses.replace(link, bandwidth=math.inf) for link in problem.links),
    )
