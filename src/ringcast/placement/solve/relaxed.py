"""One tag by itself, at given prices of links: the cheapest places of its proxies among all nodes, and a cost that no
places are below. Pure.

With unicast nothing is shared and each subscriber's cheapest node is the answer. With multicast it is the relaxation of
the one-hot program (`onehot`) over all places worth trying: x[s, v] between 0 and 1, q[k] >= the sum of those x of a
subscriber that make transfer k. Its optimum is the bound; mostly it is whole, else each subscriber takes the place with
the largest share.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ringcast.placement.case import Case, Content
from ringcast.placement.solve import linear
from ringcast.placement.solve.ways import Chosen, Figures, Numbers, Ways


@dataclass(frozen=True)
class Served:
    """`places` by the tag's subscribers, their `cost` without prices, what they load links with; `bound` is with the
    prices, and no places are below it. `took_s` is the solver's time."""

    places: Numbers
    cost: float
    loads: Figures
    bound: float
    took_s: float = 0.0


class Tag(Protocol):
    def serve(self, prices: Figures, limit_s: float = math.inf) -> Served:
        """With `prices` for a byte per second on each link, the cost included. Raises SolverMissing, SolverStopped."""


def tag(case: Case, ways: Ways, streams: list[int]) -> Tag:
    """`streams` are the numbers of all of a tag; each must have a node in time."""
    return _Unicast(case, ways, streams) if case.problem.charge == "unicast" else _Multicast(case, ways, streams)


class _Unicast:
    def __init__(self, case: Case, ways: Ways, streams: list[int]) -> None:
        self._case, self._ways = case, ways
        self._streams = [case.streams[i] for i in streams]

    def serve(self, prices: Figures, limit_s: float = math.inf) -> Served:
        routes, weight = self._case.routes, self._case.problem.objective.bandwidth
        priced = self._ways.sums(prices)
        loads, bound, places = np.zeros(len(prices)), 0.0, []
        for stream in self._streams:
            full, wanted = stream.rate(stream.full), stream.rate(stream.wanted)
            costs = full * priced[stream.publisher] + wanted * priced[stream.node]
            costs[~self._ways.in_time(stream)] = math.inf
            place = int(np.argmin(costs))
            places.append(place)
            bound += float(costs[place])
            for e in routes.links(stream.publisher, place):
                loads[e] += full
            for e in routes.links(place, stream.node):
                loads[e] += wanted
        return Served(np.array(places), weight * float(loads.sum()), loads, bound)


class _Multicast:
    """Columns are a variable for each place of each group, then one for each transfer: a content on a directed link.
    Subscribers that are equal in all (content, node, places) are one group."""

    def __init__(self, case: Case, ways: Ways, streams: list[int]) -> None:
        self._case, self._ways = case, ways
        first = case.streams[streams[0]]
        self._publisher = first.publisher
        contents: dict[Content, int] = {first.full: 0}
        groups: dict[tuple[int, int, bytes], int] = {}
        chosen: list[Chosen] = []
        self._group_of = np.empty(len(streams), dtype=np.int64)
        for i, index in enumerate(streams):
            stream = case.streams[index]
            able = ways.worth_trying(stream)
            content = contents.setdefault(stream.wanted, len(contents))
            key = (stream.node, content, able.tobytes())
            if key not in groups:
                groups[key] = len(groups)
                chosen.append(able)
            self._group_of[i] = groups[key]
        of_group, self._place = np.nonzero(np.array(chosen))
        self._begins = np.searchsorted(of_group, np.arange(len(groups) + 1))
        self._directions = 2 * len(case.problem.links)
        self._entries, made = self._transfers(of_group, np.array([key[:2] for key in groups]))
        keys, self._made = _numbered(made, len(contents) * self._directions)
        self._rates = np.array([first.rate(content) for content in contents])[keys // self._directions]
        self._links = keys % self._directions // 2
        self._rows = self._as_rows(of_group)

    def serve(self, prices: Figures, limit_s: float = math.inf) -> Served:
        places = len(self._place)
        costs = np.concatenate((np.zeros(places), self._rates * prices[self._links]))
        found = linear.least(costs, self._rows, limit_s=limit_s)
        # The largest of each group, the first of equal ones.
        shares, ends = found.values[:places], self._begins
        best = np.array([a + int(np.argmax(shares[a:b])) for a, b in itertools.pairwise(ends)])
        chosen = np.zeros(places, dtype=bool)
        chosen[best] = True
        made, _ = _numbered(self._made[chosen[self._entries]], len(self._links))
        loads = np.zeros(len(prices))
        np.add.at(loads, self._links[made], self._rates[made])
        cost = self._case.problem.objective.bandwidth * float(loads.sum())
        return Served(self._place[best][self._group_of], cost, loads, found.cost, found.took_s)

    def _transfers(self, of_group: Numbers, groups: Numbers) -> tuple[Numbers, Numbers]:
        """Which place (by column) makes which transfer (content and directed link), in two arrays."""
        ways, columns, made = self._ways, [], []
        full = np.full(len(of_group), self._publisher)
        for root, content, out in ((full, np.zeros_like(full), False), (*groups[of_group].T, True)):
            column, at = np.arange(len(of_group)), self._place
            while len(at):
                links = ways.by[root[column], at]
                column, at, links = column[links >= 0], at[links >= 0], links[links >= 0]
                beyond = ways.towards[root[column], at]
                columns.append(column)
                made.append(content[column] * self._directions + ways.directed(links, at if out else beyond))
                at = beyond
        return np.concatenate(columns), np.concatenate(made)

    def _as_rows(self, of_group: Numbers) -> linear.Rows:
        """For each group and transfer: transfer - its places >= 0. For each group: its places = 1."""
        places, keys = len(self._place), len(self._links)
        row_of = of_group[self._entries] * keys + self._made
        order = np.argsort(row_of, kind="stable")
        row_of = row_of[order]
        begins = np.flatnonzero(np.diff(row_of, prepend=-1))
        # Before the places of a row stands its transfer.
        columns = np.insert(self._entries[order], begins, places + row_of[begins] % keys)
        starts = begins + np.arange(len(begins))
        factors = np.full(len(columns), -1.0)
        factors[starts] = 1.0
        alone = len(self._begins) - 1
        return linear.Rows(
            np.concatenate((starts, len(columns) + self._begins)),
            np.concatenate((columns, np.arange(places))),
            np.concatenate((factors, np.ones(places))),
            np.concatenate((np.zeros(len(starts)), np.ones(alone))),
            np.concatenate((np.full(len(starts), np.inf), np.ones(alone))),
        )


def _numbered(values: Numbers, below: int) -> tuple[Numbers, Numbers]:
    """As `np.unique` with its inverse, of numbers from 0 to `below`, without sorting."""
    there = np.bincount(values, minlength=below) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]
