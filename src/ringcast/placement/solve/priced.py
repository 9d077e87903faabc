"""Large networks: every tag by itself over all nodes, and prices on the links they share. Pure.

Without capacities tags do not meet, so their optima together are the optimum. Where they load a link above its
capacity, a price on each byte there makes them go round it. Whatever the prices are, the sum of the tags' optima at
these prices, less what the capacities are worth at them, is a cost **that no plan is below, wherever its proxies are**:
the bound against which the gap is reported. Good prices are found by column generation: a linear program mixes the
plans that each tag has offered so far within the capacities, its prices go to the tags, and they offer better plans.
In the end each tag gets one of its plans, by an integer program.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import defaultdict

import numpy as np

from ringcast.placement import charges, plan
from ringcast.placement.case import Case
from ringcast.placement.plan import Plan
from ringcast.placement.solve import linear, relaxed
from ringcast.placement.solve.onehot import OneHot
from ringcast.placement.solve.program import Program, Solution, SolverStopped
from ringcast.placement.solve.relaxed import Served
from ringcast.placement.solve.ways import Figures, Numbers, Ways

ROUNDS = 15
_ENOUGH = 5e-4
"""Prices are good when the bound is this near to the mixed plans, as a share."""
_OVER = 1e3
"""What a byte above a capacity costs while prices are sought, in bytes on one link."""
_AT_LEAST_S = 1.0
"""What each integer program gets of the time, however much the prices took."""


@dataclasses.dataclass(frozen=True)
class Found:
    """`plan` is None when no mixture of what was offered fits; the bound holds all the same."""

    plan: Plan | None
    bound: float


def place(case: Case, gap: float, limit_s: float = math.inf) -> Found:
    """For what `regions.suits`. Every stream must have a node in time. `limit_s` is for the solver, in all; when it is
    over while prices are sought, those found so far count.

    Raises SolverMissing, SolverStopped.
    """
    search = _Search(case, limit_s)
    if not search.fits():
        with contextlib.suppress(SolverStopped):
            search.find_prices()
    places = search.chosen(gap)
    if places is None:
        return Found(None, search.bound)
    made = plan.made(case, places)
    return Found(dataclasses.replace(made, gap=above(made.cost, search.bound)), search.bound)


def above(cost: float, bound: float) -> float:
    """By which share a cost is above a bound; 0 where sums of floats differ."""
    if math.isclose(cost, bound, rel_tol=1e-9) or cost < bound:
        return 0.0
    return (cost - bound) / bound if bound > 0 else math.inf


class _Search:
    def __init__(self, case: Case, limit_s: float) -> None:
        problem = case.problem
        self._case, self._ways = case, Ways(case)
        self._capacity = np.array([link.bandwidth for link in problem.links])
        self._weight = problem.objective.bandwidth
        self._members: dict[int, list[int]] = defaultdict(list)
        for index, stream in enumerate(case.streams):
            self._members[stream.tag].append(index)
        self._tags: dict[int, relaxed.Tag] = {}
        self._left_s = limit_s
        nothing = np.zeros(len(problem.links))
        self._free = {tag: self._serve(tag, nothing, keep=False) for tag in self._members}
        self._offers = {tag: [served] for tag, served in self._free.items()}
        self.bound = math.fsum(served.bound for served in self._free.values())

    def fits(self) -> bool:
        """Whether no prices are needed."""
        return self._within(sum((served.loads for served in self._free.values()), np.zeros(len(self._capacity))))

    def find_prices(self) -> None:
        best = np.zeros(len(self._capacity))
        for _ in range(ROUNDS):
            mixed, prices = self._mix()
            # Halfway to the best so far: alone they swing from one extreme to the other.
            tried = (best + prices) / 2
            new = False
            value = -float(tried[tried > 0] @ self._capacity[tried > 0])
            for tag, free in self._free.items():
                # What a tag does not pass may become dearer: its plan stays the cheapest.
                if not free.loads[tried > 0].any():
                    value += free.bound
                    continue
                served = self._serve(tag, tried)
                value += served.bound
                if not any(np.array_equal(served.places, other.places) for other in self._offers[tag]):
                    self._offers[tag].append(served)
                    new = True
            if value > self.bound:
                self.bound, best = value, tried
            settled = not new and np.allclose(tried, prices, rtol=1e-3)
            if mixed - self.bound <= _ENOUGH * abs(mixed) or settled:
                return

    def chosen(self, gap: float) -> list[int] | None:
        """One of its plans for each tag, or their places anew where those do not fit well enough."""
        if self.fits():
            return self._places({tag: served.places for tag, served in self._free.items()})
        whole = self._whole()
        if whole is not None and above(self._cost(whole), self.bound) <= gap:
            return whole
        other = self._recombined(gap)
        fitting = [one for one in (whole, other) if one is not None and self._cost(one) < math.inf]
        return min(fitting, key=self._cost, default=None)

    def _serve(self, tag: int, prices: Figures, *, keep: bool = True) -> Served:
        # Most tags are asked once, and a tag's rows are megabytes.
        found = self._tags.get(tag) or relaxed.tag(self._case, self._ways, self._members[tag])
        if keep:
            self._tags[tag] = found
        served = found.serve(self._weight + prices, self._left_s)
        self._left_s -= served.took_s
        return served

    def _mix(self) -> tuple[float, Figures]:
        """The cheapest mixture of what was offered, and the prices of links in it."""
        tags = list(self._offers)
        owner = np.repeat(np.arange(len(tags)), [len(self._offers[tag]) for tag in tags])
        offers = [offer for tag in tags for offer in self._offers[tag]]
        loads = np.array([offer.loads for offer in offers]).T
        bound = np.flatnonzero(np.isfinite(self._capacity) & loads.any(axis=1))
        unit = np.maximum(self._capacity[bound], loads[bound].max(axis=1))
        one = (owner == np.arange(len(tags))[:, None]).astype(np.float64)
        table = np.block(
            [[one, np.zeros((len(tags), len(bound)))], [loads[bound] / unit[:, None], -np.eye(len(bound))]]
        )
        costs = np.concatenate(([offer.cost for offer in offers], _OVER * max(self._weight, 1e-9) * unit))
        row, column = np.nonzero(table)
        low = np.concatenate((np.ones(len(tags)), np.full(len(bound), -math.inf)))
        high = np.concatenate((np.ones(len(tags)), self._capacity[bound] / unit))
        rows = linear.Rows(np.searchsorted(row, np.arange(len(table) + 1)), column, table[row, column], low, high)
        found = linear.least(costs, rows, high=math.inf, limit_s=self._left_s)
        self._left_s -= found.took_s
        prices = np.zeros(len(self._capacity))
        prices[bound] = np.maximum(0.0, -found.prices[len(tags) :]) / unit
        return found.cost, prices

    def _whole(self) -> list[int] | None:
        """The cheapest choice of one offer for each tag that fits."""
        program = Program()
        columns = {
            tag: [program.variable(offer.cost, whole=True) for offer in offers] for tag, offers in self._offers.items()
        }
        for found in columns.values():
            program.row(1.0, 1.0, [(column, 1.0) for column in found])
        every = [
            (column, offer)
            for tag, found in columns.items()
            for column, offer in zip(found, self._offers[tag], strict=True)
        ]
        for e, limit in enumerate(self._capacity):
            terms = [(column, float(offer.loads[e])) for column, offer in every if offer.loads[e]]
            program.at_most(("link", e), float(limit), terms)
        if (solution := self._solved(program, _ENOUGH)) is None:
            return None
        best = {tag: max(range(len(found)), key=lambda i: solution.values[found[i]]) for tag, found in columns.items()}
        return self._places({tag: self._offers[tag][i].places for tag, i in best.items()})

    def _recombined(self, gap: float) -> list[int] | None:
        """Each subscriber anew, among the places that its tag's offers had for it; tags with one offer stay."""
        problem = self._case.problem
        staying = {tag: offers[0] for tag, offers in self._offers.items() if len(offers) == 1}
        moving = [tag for tag in self._offers if tag not in staying]
        taken = sum((served.loads for served in staying.values()), np.zeros(len(self._capacity)))
        if not self._within(taken):
            return None
        left = np.maximum(0.0, self._capacity - taken)
        links = tuple(
            dataclasses.replace(link, bandwidth=float(room)) for link, room in zip(problem.links, left, strict=True)
        )
        demands = tuple(problem.demands[tag] for tag in moving)
        rest = Case(dataclasses.replace(problem, links=links, demands=demands), self._case.routes)
        choices = [
            sorted({int(offer.places[i]) for offer in self._offers[tag]})
            for tag in moving
            for i in range(len(self._members[tag]))
        ]
        program = OneHot(rest, choices)
        if (solution := self._solved(program, gap)) is None:
            return None
        found, places = program.chosen(solution), {tag: served.places for tag, served in staying.items()}
        for tag in moving:
            count = len(self._members[tag])
            places[tag], found = np.array(found[:count]), found[count:]
        return self._places(places)

    def _solved(self, program: Program | OneHot, gap: float) -> Solution | None:
        try:
            return program.solve(gap, max(_AT_LEAST_S, self._left_s))
        except SolverStopped:
            return None

    def _places(self, of_tags: dict[int, Numbers]) -> list[int]:
        places = [0] * len(self._case.streams)
        for tag, found in of_tags.items():
            for index, node in zip(self._members[tag], found, strict=True):
                places[index] = int(node)
        return places

    def _within(self, loads: Figures) -> bool:
        return all(charges.within(load, limit) for load, limit in zip(loads, self._capacity, strict=True))

    def _cost(self, places: list[int]) -> float:
        """Infinite where a capacity is exceeded: the solver has tolerances of its own."""
        loads, problem = charges.loads(self._case, places), self._case.problem
        return loads.cost(problem) if loads.fits(problem) else math.inf
