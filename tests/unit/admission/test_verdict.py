"""Admitted or refused, with the numbers: parts that add up, what is missed, and what would fit."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from ringcast.admission import AdmissionError, Cost, Costs, Link, Node, Pull, Stream, Subscriber, System
from ringcast.admission.fitting import fits
from ringcast.admission.priorities import class_of, fifo_priorities
from ringcast.admission.recovery import delay_ns
from ringcast.admission.verdict import judge

COSTS = Costs(
    publish=Cost(fixed_s=10e-6), send=Cost(fixed_s=20e-6), receive=Cost(fixed_s=30e-6), deliver=Cost(fixed_s=40e-6),
    scale=Cost(fixed_s=50e-6), pull=Cost(fixed_s=60e-6),
)  # fmt: skip
NODES = tuple(Node(name=name) for name in "abc")
LINKS = (
    Link(a="a", b="b", bandwidth=12.5e6, latency_s=1e-3), Link(a="b", b="c", bandwidth=12.5e6, latency_s=1e-3),
)  # fmt: skip


def stream(tag: str = "t", **more: object) -> Stream:
    fields = {"node": "a", "period_s": 0.1, "bytes": 100.0, "subscribers": (Subscriber(name="s", node="b"),)}
    return Stream(tag=tag, **{**fields, **more})


def system(*streams: Stream, links: tuple[Link, ...] = LINKS) -> System:
    return System(nodes=NODES, links=links, streams=streams, costs=COSTS)


def parts(verdict, name: str = "s") -> list[tuple[str, str]]:
    one = next(one for one in verdict.judged if one.name == name)
    assert math.fsum(part.worst_s for part in one.parts) == pytest.approx(one.bound_s)
    return [(part.what, part.where) for part in one.parts]


def test_a_local_subscriber():
    found = judge(system(stream(subscribers=(Subscriber(name="s", node="a", compute_s=1e-3),))))
    assert parts(found) == [("publish", "a"), ("deliver", "a")]
    assert found.judged[0].bound_s == pytest.approx(10e-6 + 40e-6 + 1e-3)


def test_two_hops_away():
    found = judge(system(stream(subscribers=(Subscriber(name="s", node="c"),))))
    assert parts(found) == [
        ("publish", "a"), ("link", "a to b"), ("link", "b to c"), ("receive", "c"), ("deliver", "c"),
    ]  # fmt: skip


def test_a_proxy_between():
    wanted = Subscriber(name="s", node="c", every=3, scaled_bytes=10.0, at="node:b")
    found = judge(system(stream(subscribers=(wanted,))))
    assert parts(found) == [
        ("publish", "a"), ("link", "a to b"), ("receive", "b"), ("proxy", "b"), ("link", "b to c"), ("receive", "c"),
        ("deliver", "c"),
    ]  # fmt: skip
    assert found.judged[0].age_s == pytest.approx(found.judged[0].bound_s + 0.3)


def test_equal_wishes_share_a_copy_and_tcp_has_a_sender():
    both = (Subscriber(name="s", node="b"), Subscriber(name="r", node="b"))
    found = judge(system(stream(subscribers=both, transport="tcp")))
    assert parts(found) == [
        ("publish", "a"), ("send", "a"), ("link", "a to b"), ("receive", "b"), ("deliver", "b"),
    ]  # fmt: skip
    assert found.links["a to b"] == pytest.approx(234 / 0.1 / 12.5e6)


def test_a_lossy_link_costs_a_recovery():
    lossy = (Link(a="a", b="b", bandwidth=12.5e6, latency_s=1e-3, losses=1),)
    found = judge(system(stream(), links=lossy))
    assert ("recovery", "a to b") in parts(found)
    assert judge(system(stream(transport="tcp"), links=lossy)).judged[0].bound_s > 0.2
    assert ("recovery", "a to b") not in parts(judge(system(stream(transport="udp"), links=lossy)))


def test_recovery_of_each_transport():
    period, one_way = 2_000_000, 500_000
    assert delay_ns("nak", 0, period, one_way) == 0
    assert delay_ns("nak", 1, period, one_way) == 2_000_000 + 1_000_000 + 1_000_000
    assert delay_ns("lateral:r=4,c=3", 1, period, one_way) == 3 * period + one_way
    assert delay_ns("tcp", 1, period, one_way) == 200_000_000 + 2 * one_way
    assert delay_ns("nak", 2, period, one_way) > delay_ns("nak", 1, period, one_way)


def test_a_refusal_says_what_is_missed_and_what_would_fit():
    tight = stream(bytes=50_000.0, subscribers=(Subscriber(name="s", node="b", deadline_s=0.004),))
    found = judge(system(tight))
    assert not found.admitted
    (one,) = found.refused
    assert one.over_s == pytest.approx(one.bound_s - 0.004)
    assert "missed by" in one.sentence()
    assert "link (a to b)" in one.sentence()
    proposed = {fit.change: fit for fit in fits(system(tight), found)}
    assert set(proposed) == {"deadline_s", "bytes"}
    relaxed = Subscriber(name="s", node="b", deadline_s=proposed["deadline_s"].value)
    assert judge(system(msgspec.structs.replace(tight, subscribers=(relaxed,)))).admitted
    smaller = msgspec.structs.replace(tight, bytes=proposed["bytes"].value)
    assert judge(system(smaller)).admitted
    assert proposed["bytes"].value > 10_000


def test_a_longer_period_is_proposed_where_it_helps():
    busy = stream(
        "busy", period_s=0.001, compute_s=2e-3, subscribers=(Subscriber(name="s", node="a", deadline_s=0.01),)
    )
    found = judge(system(busy))
    assert "no bound" in found.refused[0].sentence()
    (fit,) = [fit for fit in fits(system(busy), found) if fit.change == "period_s"]
    assert 0.002 <= fit.value <= 0.0022
    assert judge(system(msgspec.structs.replace(busy, period_s=fit.value))).admitted


def test_another_stream_that_would_be_hurt_is_named():
    first = stream("first", subscribers=(Subscriber(name="s", node="b", deadline_s=0.004),))
    assert judge(system(first)).admitted
    second = stream("second", bytes=60_000.0, subscribers=(Subscriber(name="r", node="b", deadline_s=0.009),))
    refused = judge(system(first, second)).refused
    assert "first" in {one.tag for one in refused}


def test_what_a_pull_client_gets_is_bounded():
    pull = Pull(name="p", node="c", period_s=1.0, max_age_s=0.12)
    found = judge(system(stream(subscribers=(), pulls=(pull,))))
    (one,) = found.judged
    assert [part.what for part in one.parts] == ["next message", "publish", "pull", "link", "link", "deliver"]
    assert one.bound_s == pytest.approx(math.fsum(part.worst_s for part in one.parts))
    assert one.met
    near = Pull(name="p", node="c", period_s=1.0, max_age_s=0.12, at="subscriber")
    (one,) = judge(system(stream(subscribers=(), pulls=(near,)))).judged
    assert [part.what for part in one.parts] == ["next message", "publish", "link", "link", "receive", "pull"]


def test_priorities_follow_deadlines():
    assert [class_of(one) for one in (0.001, 0.01, 0.05, 1.0, math.inf)] == [
        "critical", "critical", "high", "normal", "low",
    ]  # fmt: skip
    made = [
        stream(f"t{i}", subscribers=(Subscriber(name="s", node="b", deadline_s=d),)) for i, d in enumerate((2, 1, 3))
    ]
    given = fifo_priorities(system(*made, stream("none")))
    assert given["t1"] > given["t0"] > given["t2"]
    assert "none" not in given
    assert max(given.values()) < 50


def test_a_document_has_no_infinity():
    busy = stream("busy", period_s=0.001, compute_s=2e-3)
    text = json.dumps(judge(system(busy)).document(), allow_nan=False)
    assert json.loads(text)["streams"][0]["bound_s"] is None


def test_costs_that_nobody_gave():
    with pytest.raises(AdmissionError, match="calibrate"):
        judge(System(nodes=NODES, links=LINKS, streams=(stream(),)))


def test_nodes_that_no_link_joins():
    with pytest.raises(AdmissionError, match="no way leads from 'a' to 'c'"):
        judge(system(stream(subscribers=(Subscriber(name="s", node="c"),)), links=LINKS[:1]))
