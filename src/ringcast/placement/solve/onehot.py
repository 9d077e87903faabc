"""The placement as a one-hot integer program: one binary per subscriber and place, one of them is 1. Pure.

Places that miss the deadline have no variable, which presolves the delay constraint. A use that several may share has a
variable q of its own, and for each subscriber one row: q >= the sum of those places of this subscriber that make it.
One row per place would be true as well, and its relaxation far weaker. What nobody shares is charged on the place
itself. Subscribers that are equal in all (content, node, candidates) are one, unless each of them is charged.
"""

from __future__ import annotations

import math
from collections import defaultdict

from ringcast.placement import charges
from ringcast.placement.case import Case
from ringcast.placement.charges import Key, Use
from ringcast.placement.solve.program import Program, Solution

Terms = list[tuple[int, float]]


class OneHot:
    """`choices` are the candidate nodes of each stream; none may be empty."""

    def __init__(self, case: Case, choices: list[list[int]]) -> None:
        self._case = case
        self.program = Program()
        self._groups = _groups(case, choices)
        self._link_terms: list[Terms] = [[] for _ in case.problem.links]
        self._node_terms: list[Terms] = [[] for _ in case.problem.nodes]
        self._places: list[dict[int, int]] = []
        self._shared: dict[Key, int] = {}
        for members in self._groups:
            self._add_group(members[0], choices[members[0]])
        self._limit_proxies()
        for e, link in enumerate(case.problem.links):
            self.program.at_most(("link", e), link.bandwidth, self._link_terms[e])
        for v, node in enumerate(case.problem.nodes):
            self.program.at_most(("node", v), node.cpu, self._node_terms[v])

    def solve(self, gap: float = 0.0, limit_s: float = math.inf) -> Solution | None:
        """The cheapest within all capacities. Raises SolverMissing, SolverStopped."""
        return self.program.solve(gap, limit_s)

    def late(self, lateness: dict[tuple[int, int], float], limit_s: float = math.inf) -> Solution | None:
        """Within all capacities, with the least sum of `lateness` (by stream and place). Instead of `solve`.

        Raises SolverMissing, SolverStopped.
        """
        self.program.cost_nothing()
        for members, places in zip(self._groups, self._places, strict=True):
            for place, column in places.items():
                self.program.set_cost(column, sum(lateness.get((one, place), 0.0) for one in members))
        return self.solve(0.0, limit_s)

    def chosen(self, solution: Solution) -> list[int]:
        """The place of every stream."""
        found = [0] * len(self._case.streams)
        for members, places in zip(self._groups, self._places, strict=True):
            best = max(places, key=lambda place: solution.values[places[place]])
            for one in members:
                found[one] = best
        return found

    def _add_group(self, one: int, candidates: list[int]) -> None:
        columns = {place: self.program.variable(whole=True) for place in candidates}
        self._places.append(columns)
        self.program.row(1.0, 1.0, [(column, 1.0) for column in columns.values()])
        makers: dict[Key, list[int]] = defaultdict(list)
        known: dict[Key, Use] = {}
        for place, column in columns.items():
            for use in charges.uses(self._case, one, place):
                if self._case.problem.charge == "unicast":
                    self._charge(column, use)
                else:
                    makers[use.key].append(column)
                    known[use.key] = use
        for key, made_by in makers.items():
            if key not in self._shared:
                self._shared[key] = self.program.variable()
                self._charge(self._shared[key], known[key])
            self.program.row(0.0, math.inf, [(self._shared[key], 1.0), *((column, -1.0) for column in made_by)])

    def _charge(self, column: int, use: Use) -> None:
        objective = self._case.problem.objective
        cpu = sum(load for _, load in use.cpu)
        self.program.add_cost(column, objective.bandwidth * use.rate * len(use.links) + objective.cpu * cpu)
        for e in use.links:
            _add(self._link_terms[e], column, use.rate)
        for node, load in use.cpu:
            if load:
                _add(self._node_terms[node], column, load)

    def _limit_proxies(self) -> None:
        limit = self._case.problem.max_proxies_per_tag
        if limit is None:
            return
        hosts: dict[int, dict[int, int]] = defaultdict(dict)
        for members, places in zip(self._groups, self._places, strict=True):
            of_tag = hosts[self._case.streams[members[0]].tag]
            for place, column in places.items():
                if place not in of_tag:
                    of_tag[place] = self.program.variable()
                self.program.row(0.0, math.inf, [(of_tag[place], 1.0), (column, -1.0)])
        for of_tag in hosts.values():
            self.program.row(-math.inf, float(limit), [(host, 1.0) for host in of_tag.values()])


def _add(terms: Terms, column: int, factor: float) -> None:
    """The same column twice is one term: a way there and back passes a link twice."""
    if terms and terms[-1][0] == column:
        terms[-1] = (column, terms[-1][1] + factor)
    else:
        terms.append((column, factor))


def _groups(case: Case, choices: list[list[int]]) -> list[list[int]]:
    if case.problem.charge == "unicast":
        return [[i] for i in range(len(case.streams))]
    found: dict[object, list[int]] = defaultdict(list)
    for i, stream in enumerate(case.streams):
        found[stream.tag, stream.node, stream.wanted, tuple(choices[i])].append(i)
    return list(found.values())
