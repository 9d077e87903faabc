"""What a proxy's place costs: the pieces of work that it makes, and which of them are shared. Pure.

A **use** is one piece of work with a key: a transfer that loads links and its two ends, or the scaling on a node. Equal
keys are one piece of work, done and charged once. The three ways of charging differ in their keys only:

| | a transfer's key | so |
|---|---|---|
| unicast | the subscriber | nothing is shared (paper 001, 2.4, footnote 8) |
| sent | content, from, to | the leg to a proxy is shared, and so are equal demands of one node: what the mesh does |
| multicast | content and link, content and sender, content and receiver | a link carries each content once |

CPU is the sum of hz_in * in_s + hz_out * out_s + hz_scaled * scale_s on publisher, proxy and subscriber; what merely
forwards packets spends none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ringcast.placement.case import Case, Content, Stream
from ringcast.placement.model import Problem

Key = Hashable
_SLACK = 1e-9
"""Relative: a load that is the capacity fits."""


@dataclass(frozen=True, slots=True)
class Use:
    """A piece of work: bytes per second on each of `links`, and CPU on nodes."""

    key: Key
    rate: float = 0.0
    links: tuple[int, ...] = ()
    cpu: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Loads:
    """Bytes per second by link, CPU by node, in the order of the problem."""

    links: list[float]
    nodes: list[float]

    def cost(self, problem: Problem) -> float:
        return problem.objective.of(self.links, self.nodes)

    def fits(self, problem: Problem) -> bool:
        return all(within(load, link.bandwidth) for load, link in zip(self.links, problem.links, strict=True)) and all(
            within(load, node.cpu) for load, node in zip(self.nodes, problem.nodes, strict=True)
        )


def within(load: float, capacity: float) -> bool:
    return load <= capacity * (1 + _SLACK)


def uses(case: Case, index: int, proxy: int) -> Iterator[Use]:
    """What serving subscriber `index` from a proxy on `proxy` takes."""
    stream = case.streams[index]
    charge = case.problem.charge
    own: tuple[Key, ...] = (index,) if charge == "unicast" else ()
    legs = []
    if proxy != stream.publisher:
        legs.append((stream.full, stream.publisher, proxy))
    if proxy != stream.node:
        legs.append((stream.wanted, proxy, stream.node))
    for content, source, to in legs:
        if charge == "multicast":
            yield from _shared_transfer(case, stream, content, source, to)
        else:
            yield _transfer(case, stream, content, source, to, own)
    scaling = stream.hz(stream.wanted) * case.problem.costs.scale_s
    if scaling:
        yield Use(("scale", stream.wanted, proxy, *own), cpu=((proxy, scaling),))


def total(case: Case, found: Iterable[Use]) -> Loads:
    """Each key once."""
    links, nodes = [0.0] * len(case.problem.links), [0.0] * len(case.problem.nodes)
    for use in {use.key: use for use in found}.values():
        for e in use.links:
            links[e] += use.rate
        for node, cpu in use.cpu:
            nodes[node] += cpu
    return Loads(links, nodes)


def loads(case: Case, places: Sequence[int]) -> Loads:
    """With the proxy of each subscriber on the node that `places` says."""
    return total(case, (use for index, proxy in enumerate(places) for use in uses(case, index, proxy)))


def within_proxies(case: Case, places: Sequence[int]) -> bool:
    """Whether no tag has its proxies on more nodes than allowed."""
    limit = case.problem.max_proxies_per_tag
    if limit is None:
        return True
    nodes: dict[int, set[int]] = {}
    for stream, place in zip(case.streams, places, strict=True):
        nodes.setdefault(stream.tag, set()).add(place)
    return all(len(found) <= limit for found in nodes.values())


def _transfer(case: Case, stream: Stream, content: Content, source: int, to: int, own: tuple[Key, ...]) -> Use:
    costs, hz = case.problem.costs, stream.hz(content)
    return Use(
        (content, source, to, *own), stream.rate(content), case.routes.links(source, to),
        ((source, hz * costs.out_s), (to, hz * costs.in_s)),
    )  # fmt: skip


def _shared_transfer(case: Case, stream: Stream, content: Content, source: int, to: int) -> Iterator[Use]:
    costs, hz, rate = case.problem.costs, stream.hz(content), stream.rate(content)
    for directed in case.routes.directed(source, to):
        yield Use(("link", content, directed), rate, (directed // 2,))
    if costs.out_s:
        yield Use(("out", content, source), cpu=((source, hz * costs.out_s),))
    if costs.in_s:
        yield Use(("in", content, to), cpu=((to, hz * costs.in_s),))
