"""Systems at random, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from ringcast.admission import Cost, Costs, Link, Node, OtherTask, Stream, Subscriber, System

NAMES = ("a", "b", "c")
COSTS = Costs(
    publish=Cost(fixed_s=5e-6, per_byte_s=2e-10), send=Cost(fixed_s=12e-6, per_byte_s=5e-10),
    receive=Cost(fixed_s=20e-6, per_byte_s=5e-10), deliver=Cost(fixed_s=15e-6, per_byte_s=2e-10),
    scale=Cost(fixed_s=30e-6, per_byte_s=1e-9), pull=Cost(fixed_s=10e-6),
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn, tag: str) -> Stream:
    period_s = draw(st.integers(1, 40)) * 1e-3
    node = draw(st.sampled_from(NAMES))
    wanted = [
        Subscriber(
            name=f"s{i}", node=draw(st.sampled_from(NAMES)),
            deadline_s=period_s * draw(st.sampled_from((0.3, 1.0, 3.0))),
            every=draw(st.sampled_from((1, 1, 2, 3))),
            scaled_bytes=draw(st.sampled_from((None, None, 100.0))),
            at=draw(st.sampled_from(("publisher", "subscriber", "node:b"))),
            compute_s=draw(st.sampled_from((0.0, 1e-4))), transport=draw(st.sampled_from(("", "", "tcp", "udp"))),
        )
        for i in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return Stream(
        tag=tag, node=node, period_s=period_s, bytes=float(draw(st.sampled_from((64, 1000, 8000)))),
        compute_s=period_s * draw(st.sampled_from((0.0, 0.05, 0.2))),
        jitter_s=period_s * draw(st.sampled_from((0.0, 0.0, 0.1))),
        transport=draw(st.sampled_from(("udp", "nak", "tcp"))), subscribers=tuple(wanted),
    )  # fmt: skip


@st.composite
def systems(draw: st.DrawFn, most: int = 5) -> System:
    cards = st.sampled_from((0.0, 0.0, 1.25e6, 12.5e6))
    nodes = tuple(Node(name=name, cores=draw(st.sampled_from((1, 1, 2, 3))), card=draw(cards)) for name in NAMES)
    links = tuple(
        Link(a=a, b=b, bandwidth=draw(st.sampled_from((1.25e6, 12.5e6))), latency_s=draw(st.sampled_from((0.0, 2e-4))))
        for a, b in (("a", "b"), ("b", "c"))
    )
    chosen = tuple(draw(streams(f"t{i}")) for i in range(draw(st.integers(1, most))))
    tasks = tuple(
        OtherTask(name=f"o{i}", node=draw(st.sampled_from(NAMES)), period_s=0.01 * draw(st.integers(1, 3)),
                  compute_s=1e-3, deadline_s=0.01)
        for i in range(draw(st.integers(0, 2)))
    )  # fmt: skip
    return System(nodes=nodes, links=links, streams=chosen, tasks=tasks, costs=COSTS)
