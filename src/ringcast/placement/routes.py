"""Which way data takes between two nodes. Pure.

The route has the fewest hops; of those the least latency; of those the one that does without the link listed last in
the file, among the links in which they differ. That order has no ties, so a route is the same in both directions, and
every part of a route is the route of its ends: routes from one node form a tree.
"""

from __future__ import annotations

from ringcast.placement.model import Link, Node


class Routes:
    """Nodes and links by number, as they are listed. Trees are made when first asked for."""

    PER_SECOND = 1e12
    """Latencies are compared as whole picoseconds, because sums of floats depend on their order."""

    def __init__(self, nodes: tuple[Node, ...], links: tuple[Link, ...]) -> None:
        self.number = {node.name: i for i, node in enumerate(nodes)}
        self._ends = [(self.number[link.a], self.number[link.b]) for link in links]
        self.latencies = [round(link.latency_s * self.PER_SECOND) for link in links]
        self._beside: list[list[tuple[int, int]]] = [[] for _ in nodes]
        for e, (a, b) in enumerate(self._ends):
            self._beside[a].append((b, e))
            self._beside[b].append((a, e))
        self._trees: dict[int, list[tuple[int, int]]] = {}
        self._orders: dict[int, list[int]] = {}
        self._ways: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def tree(self, root: int) -> list[tuple[int, int]]:
        """For every node its neighbour towards `root` and the link there; (-1, -1) for the root."""
        if root not in self._trees:
            self._trees[root] = self._grow(root)
        return self._trees[root]

    def clear_of(self, root: int, links: set[int]) -> list[int]:
        """For every node the hops of its route to `root` when that passes none of `links`, else -1."""
        tree = self.tree(root)
        hops = [-1] * len(tree)
        hops[root] = 0
        for node in self._orders[root][1:]:
            parent, link = tree[node]
            if hops[parent] >= 0 and link not in links:
                hops[node] = hops[parent] + 1
        return hops

    def nodes(self, source: int, to: int) -> tuple[int, ...]:
        """The nodes of the route, both ends included."""
        return self._way(source, to)[0]

    def links(self, source: int, to: int) -> tuple[int, ...]:
        return self._way(source, to)[1]

    def directed(self, source: int, to: int) -> list[int]:
        """The links of the route as 2 * link + direction (0 from a to b, 1 back)."""
        passed, links = self._way(source, to)
        return [2 * e + (self._ends[e][0] != node) for node, e in zip(passed, links, strict=False)]

    def hops(self, source: int, to: int) -> int:
        return len(self._way(source, to)[1])

    def latency_s(self, source: int, to: int) -> float:
        return sum(self.latencies[e] for e in self._way(source, to)[1]) / self.PER_SECOND

    def _way(self, source: int, to: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = self._ways.get((source, to))
        if found is None:
            tree, at = self.tree(source), to
            nodes, links = [to], []
            while at != source:
                at, link = tree[at]
                nodes.append(at)
                links.append(link)
            found = self._ways[source, to] = tuple(reversed(nodes)), tuple(reversed(links))
        return found

    def _grow(self, root: int) -> list[tuple[int, int]]:
        """Breadth first: hops decide before all else, so a layer is settled when the next is begun."""
        parent = [(-1, -1)] * len(self._beside)
        # Latency, and the set of links as bits: the larger number is the set with the later link.
        best: dict[int, tuple[int, int]] = {root: (0, 0)}
        layer = [root]
        order = self._orders[root] = []
        while layer:
            order += layer
            reached: dict[int, tuple[int, int]] = {}
            for node in layer:
                latency, used = best[node]
                for other, e in self._beside[node]:
                    if other in best:
                        continue
                    key = (latency + self.latencies[e], used | 1 << e)
                    if other not in reached or key < reached[other]:
                        reached[other] = key
                        parent[other] = (node, e)
            best.update(reached)
            layer = list(reached)
        return parent
