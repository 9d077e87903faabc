"""Bounds hold: no run of a system is ever slower, and another stream never makes one shorter."""

from __future__ import annotations

import math

import msgspec
from admission_simulator import Simulator
from admission_systems import streams, systems
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast.admission import Costs, Node, OtherTask, Stream, Subscriber, System
from ringcast.admission.analysis import analyse
from ringcast.admission.verdict import judge


@settings(max_examples=150, deadline=None, derandomize=True)
@given(systems(), st.integers(0, 2**32))
def test_a_simulation_never_exceeds_the_bound(system: System, seed: int) -> None:
    found = analyse(system)
    noise = all(math.isfinite(stream.deadline_s) for stream in system.streams)
    simulator = Simulator(system, seed, noise)
    simulator.run(150_000_000)
    for step in found.plan.steps:
        assert simulator.longest[step.number] <= found.end_ns[step.number] + 100, (step, found.plan.way(step.number))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(systems(), streams("new"))
def test_another_stream_never_shortens_a_bound(system: System, more: object) -> None:
    before = {(one.kind, one.tag, one.name): one for one in judge(system).judged}
    larger = msgspec.structs.replace(system, streams=(*system.streams, more))
    after = {(one.kind, one.tag, one.name): one for one in judge(larger).judged}
    for key, one in before.items():
        assert after[key].bound_s >= one.bound_s


def test_a_run_of_work_meets_what_is_more_important_once() -> None:
    """A publisher and its subscriber on one core, 2 ms each, beside 3 ms of every 20: 7 ms, not 10."""
    reader = Subscriber(name="s", node="a", deadline_s=0.02, compute_s=2e-3)
    stream = Stream(tag="t", node="a", period_s=0.02, bytes=8, compute_s=2e-3, subscribers=(reader,))
    above = OtherTask(name="o", node="a", period_s=0.02, compute_s=3e-3, deadline_s=0.005)
    system = System(nodes=(Node(name="a", cores=1),), streams=(stream,), tasks=(above,), costs=Costs())
    (found,) = (one for one in judge(system).judged if one.kind == "subscriber")
    assert math.isclose(found.bound_s, 7e-3)


def test_the_simulation_comes_near_the_bound() -> None:
    """Or the test above could not fail."""
    shares = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(systems())
    def look(system: System) -> None:
        found = analyse(system)
        simulator = Simulator(system, 1, noise=True)
        simulator.run(150_000_000)
        shares.extend(
            simulator.longest[end.last] / found.end_ns[end.last]
            for end in found.plan.ends
            if math.isfinite(found.end_ns[end.last])
        )

    look()
    assert sorted(shares)[len(shares) // 2] > 0.2
    assert max(shares) > 0.8
