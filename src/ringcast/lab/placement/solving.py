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
from ringcast.placement.plan import Plan
from ringcast.placement.solve import priced, regions
from ringcast.placement.solve.optimise import GAP, optimise, optimise_case
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
    began = time.perf_counter()
    plan = optimise(problem, _LIMIT_S)
    took = time.perf_counter() - began
    free = optimise(_unlimited(problem, capacities=True), _LIMIT_S)
    crowded, added = _binding(problem, plan, free)
    on_the_way = charges.loads(case := Case(problem), regions.nearest(case)).cost(problem)
    name = "500 nodes, 10,000 subscribers, multicast, binding links"
    rows = [
        at_most(f"{name}: time to the plan", took, "s", 15.0),
        at_most(f"{name}: gap to a lower bound that holds for {plan.scope}", _percent(plan.gap, plan), "%", 1.0),
        figure(f"{name}: links that the cheapest plan without capacities overloads", crowded, "links"),
        figure(f"{name}: what the capacities add to the cost", added, "%"),
        figure(
            f"{name}: cheapest places on the way, capacities ignored, against this plan: dearer by",
            _percent(on_the_way / plan.cost - 1, plan), "%",
        ),
    ]  # fmt: skip
    return Findings(rows)


def against_the_optimum(steps: Steps) -> Findings:
    """How large networks are solved, on one that is small enough to hand all places to the solver at once."""
    steps.expect(1)
    steps.step("60 nodes, 240 subscribers")
    case = Case(large(60, 240, 24, full=2, seed=1))
    found, best = priced.place(case, GAP), optimise_case(case, _LIMIT_S)
    name = "60 nodes, 240 subscribers, multicast, binding links, solved as large networks are"
    plan = found.plan or Plan(case.problem, False)
    over = _percent(plan.cost / best.cost - 1, plan)
    return Findings(
        [
            at_most(f"{name}: dearer than the optimum over all nodes by", over, "%", 1.0),
            at_most(f"{name}: gap that it reports, to its lower bound", _percent(plan.gap, plan), "%", 1.0),
            at_most(f"{name}: its lower bound as a share of the optimum", 100 * found.bound / best.cost, "%", 100.0),
        ]
    )  # fmt: skip


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


def _binding(problem: Problem, plan: Plan, free: Plan) -> tuple[int, float | None]:
    """How many links the plan without capacities overloads, and by how many percent the one with them costs more."""
    crowded = sum(
        not charges.within(load, link.bandwidth) for load, link in zip(free.links, problem.links, strict=True)
    )
    return crowded, _percent(plan.cost / free.cost - 1, plan)


def _percent(share: float, plan: Plan) -> float | None:
    return 100 * share if plan.feasible else None


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
