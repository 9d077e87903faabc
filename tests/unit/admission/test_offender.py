"""A declared publisher tries to send ten times what it declared: what its bucket lets through leaves its neighbours
their bounds. With a made-up clock, and what passes on processors and links that are simulated."""

from __future__ import annotations

import pytest

from ringcast.admission import Cost, Costs, Link, Node, Stream, Subscriber, System
from ringcast.admission.analysis import analyse
from ringcast.model.declared import Bucket, Declared

from admission_simulator import Simulator  # isort: skip

MS = 1_000_000
UNTIL = 600 * MS
SAID = Declared(0.010, 2000, jitter_s=0.001)
COST = Cost(fixed_s=2e-4)


def system() -> System:
    """The offender's messages pass the neighbour's node, link and receiver, and have the shorter deadline."""
    offender = Stream(
        tag="offender", node="a", period_s=SAID.period_s, bytes=float(SAID.max_bytes), jitter_s=SAID.jitter_s,
        transport="udp", subscribers=(Subscriber(name="o", node="b", deadline_s=0.008),),
    )  # fmt: skip
    neighbour = Stream(
        tag="neighbour", node="a", period_s=0.020, bytes=1000.0, transport="udp",
        subscribers=(Subscriber(name="n", node="b", deadline_s=0.009),),
    )  # fmt: skip
    costs = Costs(publish=COST, send=COST, receive=COST, deliver=COST)
    return System(
        nodes=(Node(name="a", card=1.25e6), Node(name="b", card=1.25e6)), streams=(offender, neighbour), costs=costs,
        links=(Link(a="a", b="b", bandwidth=1.25e6, latency_s=1e-4),),
    )  # fmt: skip


def passed(tried: list[int]) -> list[int]:
    bucket, through = Bucket(SAID), []
    for now in tried:
        if not bucket.wait_ns(now):
            bucket.take(now)
            through.append(now)
    return through


TRIED = list(range(0, UNTIL, MS))
"""Every millisecond, though one every ten is declared."""


def longest_of_neighbour(released: list[int], seed: int) -> tuple[int, float]:
    """How long the neighbour's messages took at most, and their bound."""
    made = system()
    found = analyse(made)
    roots = [step for step in found.plan.steps if step.before < 0]
    simulator = Simulator(made, seed, noise=True)
    simulator.run(UNTIL, {roots[0].number: released})
    (end,) = (end for end in found.plan.ends if end.tag == "neighbour")
    return simulator.longest[end.last], found.end_ns[end.last]


def test_one_message_in_each_period_passes():
    through = passed(TRIED)
    assert len(TRIED) == 10 * UNTIL // (10 * MS)
    assert UNTIL // (10 * MS) <= len(through) <= UNTIL // (10 * MS) + 1
    for i, first in enumerate(through):
        for count, last in enumerate(through[i:]):  # any window has what the analysis counts in it, and no more
            assert count * 10 * MS <= last - first + MS


@pytest.mark.parametrize("seed", range(6))
def test_the_neighbours_bound_holds(seed):
    took, bound = longest_of_neighbour(passed(TRIED), seed)
    assert 0 < took <= bound


def test_without_enforcement_it_would_not():
    """Or the test above could not fail."""
    took, bound = longest_of_neighbour(TRIED, 1)
    assert took > bound
