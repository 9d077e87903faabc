"""All routes of a network as arrays, so that every node can be weighed as a place of every proxy. Pure.

Row r of each array is about the tree of routes to and from node r (`routes`).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ringcast.placement import delay
from ringcast.placement.case import Case, Stream

Numbers = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]
Chosen = npt.NDArray[np.bool_]


class Ways:
    """`towards[r, v]` is the next node from v to r and `by[r, v]` the link to it; -1 where v is r."""

    def __init__(self, case: Case) -> None:
        routes, problem = case.routes, case.problem
        trees = np.array([routes.tree(root) for root in range(len(problem.nodes))], dtype=np.int64)
        self.towards, self.by = trees[:, :, 0], trees[:, :, 1]
        self._first_end = np.array([routes.number[link.a] for link in problem.links], dtype=np.int64)
        self._hosts = np.array([node.host for node in problem.nodes])
        self._hops = self.sums(np.ones(len(problem.links)))
        # Whole picoseconds, as `routes` adds them: a deadline is met here exactly where it is met there.
        self._latency_s = self.sums(np.array(routes.latencies, dtype=np.float64)) / routes.PER_SECOND

    def directed(self, links: Numbers, sources: Numbers) -> Numbers:
        """Links as `Routes.directed` numbers them, when they are left from `sources`."""
        found: Numbers = 2 * links + (self._first_end[links] != sources)
        return found

    def sums(self, of_links: Figures) -> Figures:
        """For every root and node the sum over the links between them."""
        size = len(self.by)
        found, roots = np.zeros((size, size)), np.arange(size)[:, None]
        at = np.broadcast_to(np.arange(size), (size, size))
        while (going := (links := self.by[roots, at]) >= 0).any():
            found += np.where(going, of_links[links], 0.0)
            at = np.where(going, self.towards[roots, at], at)
        return found

    def in_time(self, stream: Stream) -> Chosen:
        """The nodes that `delay.candidates` has, of all."""
        if math.isinf(stream.deadline_s):
            return self._hosts.copy()
        there, on = stream.publisher, stream.node
        late: Figures = (
            self._hops[there] * stream.period_s
            + self._hops[on] * stream.scaled_period_s
            + (self._latency_s[there] + self._latency_s[on])
        )
        able: Chosen = self._hosts & (late <= delay.latest(stream.deadline_s))
        return able

    def worth_trying(self, stream: Stream) -> Chosen:
        """Nodes in time, without those from which the scaled stream goes back where the full one came from: the node
        where it turns off carries less on every link and is earlier, so no plan needs them."""
        there, on = stream.publisher, stream.node
        straight: Chosen = self.by[there] != self.by[on]
        straight[[there, on]] = True
        straight &= self.in_time(stream)
        return straight
