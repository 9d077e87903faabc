"""Networks made by a fixed generator and a seed: small ones for the oracle, a large one for the clock. Pure."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from random import Random
from typing import get_args

from ringcast.placement.case import Case
from ringcast.placement.charges import loads, uses
from ringcast.placement.delay import worst_case
from ringcast.placement.model import Charge, Costs, Demand, Link, Node, Objective, Problem, Subscriber, changed
from ringcast.placement.solve import regions

SEED = 15
_PERIODS = (0.5, 1.0, 2.0)
_SIZES = (60, 120, 240)


def small(number: int, seed: int = SEED) -> Problem:
    """A network of 3 to 6 nodes with up to four subscribers. By `number` modulo 3: capacities bind, deadlines bind,
    nothing does. Costs and charges take turns, so that every pair of them occurs with each."""
    random = Random(seed * 1_000_003 + number)
    names = [f"n{i}" for i in range(random.randint(3, 6))]
    demands = tuple(_small_demand(random, tag, names) for tag in range(random.randint(1, 2)))
    charge: Charge = get_args(Charge)[number // 3 % 3]
    objective = (Objective(1, 0), Objective(0, 1), Objective(1, random.uniform(10, 1000)))[number // 9 % 3]
    problem = Problem(
        tuple(Node(name) for name in names), _joined(random, names, random.randint(0, 3)), demands,
        Costs(random.choice((0.0, 0.01)), random.choice((0.01, 0.02)), random.choice((0.0, 0.03))),
        objective, charge, random.choice((None, None, 1, 2)),
    )  # fmt: skip
    if number % 3 == 0:
        return _binding_capacities(problem, random)
    return _binding_deadlines(problem, random) if number % 3 == 1 else problem


def large(
    nodes: int = 500, subscribers: int = 10_000, tags: int = 50, seed: int = SEED, tight: float = 0.5, full: int = 5
) -> Problem:
    """Each node joins an earlier one, and an eighth as many links more make ways round; multicast.

    Links bind: the cheapest places on the way are computed without capacities; of the links that have a way round and
    carry at most an eighth of the tags, the `full` most loaded get `tight` of that load as their capacity, and all
    others twice theirs. A third of the subscribers have deadlines that a proxy at the publisher does not meet.
    """
    random = Random(seed)
    names = [f"n{i}" for i in range(nodes)]
    links = _joined(random, names, nodes // 8)
    demands = tuple(_large_demand(random, tag, names, subscribers // tags) for tag in range(tags))
    problem = Problem(tuple(map(Node, names)), links, demands, charge="multicast")
    problem = _with_deadlines(problem, random)
    case = Case(problem)
    places = regions.nearest(case)
    loaded, carried = loads(case, places).links, defaultdict(set)
    for i, place in enumerate(places):
        for use in uses(case, i, place):
            for e in use.links:
                carried[e].add(case.streams[i].tag)
    bridges = _bridges(case)
    able = [e for e in carried if e not in bridges and len(carried[e]) <= tags / 8]
    chosen = set(sorted(able, key=lambda e: (-loaded[e], e))[:full])
    capacities = [load * tight if e in chosen else 2 * load + 1e6 for e, load in enumerate(loaded)]
    return dataclasses.replace(
        problem,
        links=tuple(dataclasses.replace(link, bandwidth=found) for link, found in zip(links, capacities, strict=True)),
    )


def _joined(random: Random, names: list[str], extra: int) -> tuple[Link, ...]:
    pairs = {(random.randrange(i), i) for i in range(1, len(names))}
    for _ in range(extra):
        a, b = sorted(random.sample(range(len(names)), 2))
        pairs.add((a, b))
    return tuple(Link(names[a], names[b], latency_s=random.choice((0.0, 0.01, 0.02))) for a, b in sorted(pairs))


def _small_demand(random: Random, tag: int, names: list[str]) -> Demand:
    subscribers = tuple(
        Subscriber(f"s{i}", random.choice(names), random.choice((1, 2, 3, 4)), random.choice((None, None, 30)))
        for i in range(random.randint(1, 2))
    )
    return Demand(f"t{tag}", random.choice(names), random.choice(_PERIODS), random.choice(_SIZES), subscribers)


def _large_demand(random: Random, tag: int, names: list[str], count: int) -> Demand:
    subscribers = tuple(
        Subscriber(f"s{i}", random.choice(names), random.choice((1, 2, 4, 5, 8, 10))) for i in range(count)
    )
    period = random.choice((0.01, 0.02, 0.05))
    return Demand(f"t{tag}", random.choice(names), period, random.choice((200, 1000, 5000)), subscribers)


def _with_deadlines(problem: Problem, random: Random) -> Problem:
    """A third of the subscribers get one between what the best and the worst place on their way take."""
    case = Case(problem)
    late = {}
    for stream in case.streams:
        if random.random() < 1 / 3:
            best, worst = (worst_case(case, stream, node).total_s for node in (stream.node, stream.publisher))
            late[stream.demand.tag, stream.subscriber.name] = max(best + random.random() * (worst - best), 1e-3)
    return changed(problem, lambda key: {"deadline_s": late[key]} if key in late else {})


def _binding_capacities(problem: Problem, random: Random) -> Problem:
    """Some links and nodes get less than the cheapest plan without capacities asks of them, or little more."""
    case = Case(problem)
    free = loads(case, [random.choice(case.on_the_way(stream)) for stream in case.streams])
    links = tuple(
        dataclasses.replace(link, bandwidth=load * random.uniform(0.3, 1.2)) if load and random.random() < 0.7 else link
        for link, load in zip(problem.links, free.links, strict=True)
    )
    nodes = tuple(
        dataclasses.replace(node, cpu=load * random.uniform(0.6, 1.5)) if load and random.random() < 0.4 else node
        for node, load in zip(problem.nodes, free.nodes, strict=True)
    )
    return dataclasses.replace(problem, links=links, nodes=nodes)


def _binding_deadlines(problem: Problem, random: Random) -> Problem:
    """Between a little less than the best place takes, which nothing meets, and a little more than the worst."""
    case = Case(problem)
    late = {}
    for stream in case.streams:
        delays = [worst_case(case, stream, node).total_s for node in range(len(problem.nodes))]
        late[stream.demand.tag, stream.subscriber.name] = max(
            1e-3, random.uniform(0.9 * min(delays), 1.1 * max(delays))
        )
    return changed(problem, lambda key: {"deadline_s": late[key]})


def _bridges(case: Case) -> set[int]:
    """Links without which the network is not connected (bridges)."""
    links, beside = case.problem.links, defaultdict(list)
    for e, link in enumerate(links):
        a, b = case.routes.number[link.a], case.routes.number[link.b]
        beside[a].append((b, e))
        beside[b].append((a, e))
    found = set()
    for e, link in enumerate(links):
        start, end = case.routes.number[link.a], case.routes.number[link.b]
        reached, waiting = {start}, [start]
        while waiting and end not in reached:
            for other, by in beside[waiting.pop()]:
                if by != e and other not in reached:
                    reached.add(other)
                    waiting.append(other)
        if end not in reached:
            found.add(e)
    return found
