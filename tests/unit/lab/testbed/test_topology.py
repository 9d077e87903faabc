from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.errors import RingcastError
from ringcast.lab.testbed.scripts import PATTERN, burst_pattern
from ringcast.lab.testbed.topology import Loss, Plan, Topology, TopologyError, Wire, bits_per_second, chain, pair, star

OFFICE = """
rate = "100mbit"
loss = "every 1000"

[nodes]
r = "router"
s1 = "switch"
s2 = "switch"

[[links]]
between = ["a", "s1"]

[[links]]
between = ["b", "s1"]
rate = "10mbit"

[[links]]
between = ["s1", "s2"]

[[links]]
between = ["s2", "r"]

[[links]]
between = ["r", "c"]
loss = "2%"
shaper = "htb"
"""


def links(*ends: str, **kinds: str) -> Topology:
    """`links("a-b", "b-c", b="router")`"""
    return msgspec.convert({"links": [{"between": e.split("-")} for e in ends], "nodes": kinds}, type=Topology)


def follow(plan: Plan, start: str, segment: int) -> list[str]:
    """The nodes that a packet from `start` to `segment` passes, by each node's own routes."""
    passed = [start]
    while True:
        route = next(r for r in plan.routes[passed[-1]] if r.segment == segment)
        assert route.out in plan.ports[passed[-1]]
        if route.gateway is None:
            assert route.out.segment == segment
            return passed
        assert route.gateway.segment == route.out.segment
        assert route.gateway.node not in passed
        passed.append(route.gateway.node)


def test_a_chain_has_hosts_at_its_ends_and_routers_between() -> None:
    plan = Plan(chain(4))
    assert plan.kinds == {"a": "host", "b": "router", "c": "router", "d": "host"}
    assert [str(wire) for wire in plan.wires] == ["a-b", "b-c", "c-d"]
    assert follow(plan, "a", plan.port("d").segment) == ["a", "b", "c"]


def test_a_pair_is_two_hosts() -> None:
    assert Plan(pair()).kinds == {"a": "host", "b": "host"}


def test_a_star_around_a_switch_is_one_segment() -> None:
    plan = Plan(star(3))
    assert plan.machines == ["a", "b", "c"]
    assert len({plan.address(name).network for name in plan.machines}) == 1
    assert [len(plan.routes[name]) for name in plan.machines] == [1, 1, 1]


def test_a_star_around_a_router_is_a_segment_per_host() -> None:
    plan = Plan(star(3, hub="router"))
    assert follow(plan, "a", plan.port("c").segment) == ["a", "hub"]


def test_the_first_wire_gives_the_primary_address() -> None:
    plan = Plan(chain(3))
    assert str(plan.address("b")) == "10.0.0.2/24"
    assert str(plan.address("b", 6)) == "fd72:6361:7374::2/64"
    assert plan.address("b", toward="a") == plan.address("b")
    assert str(plan.address("b", toward="c")) == "10.0.1.1/24"


def test_the_first_wire_counts_also_when_its_segment_is_found_last() -> None:
    plan = Plan(links("r-s", "r-a", "s-b", s="switch", r="router"))
    assert plan.address("r") == plan.address("r", toward="s")


def test_a_file_says_it_all() -> None:
    plan = Plan(Topology.parse(OFFICE))
    wires = {str(wire): wire for wire in plan.wires}
    assert wires["a-s1"] == Wire(("a", "s1"), "100mbit", "every 1000")
    assert wires["b-s1"].rate == "10mbit"
    assert wires["r-c"] == Wire(("r", "c"), "100mbit", "2%", "htb")
    assert plan.machines == ["a", "b", "r", "c"]
    # Two switches in a row are one segment.
    assert plan.address("a").network == plan.address("r").network != plan.address("c").network


def test_a_topology_survives_being_recorded() -> None:
    topology = Topology.parse(OFFICE)
    assert msgspec.json.decode(msgspec.json.encode(topology), type=Topology) == topology


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="cannot read the topology"):
        Topology.load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[links", "f.toml"),
        ("links = 3", "Expected `array`"),
        ("speed = 1\nlinks = []", "unknown field `speed`"),
        ('[[links]]\nbetween = ["a"]', "length 2"),
        ('[[links]]\nbetween = ["a", "b"]\nrate = "fast"', "'fast' is not a rate"),
        ('[[links]]\nbetween = ["a", "b"]\nrate = 10', "Expected `str | null`"),
        ('[[links]]\nbetween = ["a", "b"]\nloss = "some"', "'some' is not a loss"),
        ('[[links]]\nbetween = ["a", "b"]\ndelay = "1ms"', "unknown field `delay`"),
        ('nodes = {a = "modem"}\n[[links]]\nbetween = ["a", "b"]', "Invalid enum value 'modem'"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(TopologyError) as caught:
        Topology.parse(text, "f.toml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("f.toml: ")
    assert isinstance(caught.value, RingcastError)


@pytest.mark.parametrize(
    ("topology", "says"),
    [
        (Topology(()), "there are no links"),
        (links("a-a"), "joins a node to itself"),
        (links("a-b", "b-a"), "is there twice"),
        (links("a-b", c="router"), "no link goes to c"),
        (links("a-b", "b-c"), "'a' cannot reach 'c'"),
        (links("a-b", "c-d"), "'a' cannot reach 'c'"),
        (links("a-s", "s-t", "t-u", "u-s", s="switch", t="switch", u="switch"), "closes a loop"),
        (links("a-s", "s-t", "t-a", s="switch", t="switch"), "wired twice"),
    ],
)
def test_a_network_that_cannot_be_built_has_no_plan(topology: Topology, says: str) -> None:
    with pytest.raises(TopologyError, match=says):
        Plan(topology)


@pytest.mark.parametrize("name", ["", "thirteen-long", "a b", "a;b", "../a", "-a", "a-", "ä", "a\n"])
def test_names_that_are_no_names(name: str) -> None:
    with pytest.raises(TopologyError, match="not a node's name"):
        Plan(Topology((Wire((name, "other")),)))


def test_the_rate_for_all_is_checked_too() -> None:
    with pytest.raises(TopologyError, match="not a rate"):
        Plan(chain(2, rate="10"))
    with pytest.raises(TopologyError, match="not a loss"):
        Plan(chain(2, loss="110%"))


@pytest.mark.parametrize("count", [-1, 0, 1, 255])
def test_too_few_or_too_many_nodes(count: int) -> None:
    for shape in (chain, star):
        with pytest.raises(TopologyError, match="from 2 to 254 nodes"):
            shape(count)


def test_254_nodes_have_names_of_their_own() -> None:
    assert len(Plan(star(254)).machines) == 254


def test_what_is_not_in_the_network_is_named() -> None:
    plan = Plan(star(2))
    with pytest.raises(TopologyError, match="no node 'x' in a-hub, b-hub"):
        plan.port("x")
    with pytest.raises(TopologyError, match="no link a-b in"):
        plan.port("a", "b")
    with pytest.raises(TopologyError, match="is a switch and has no address"):
        plan.address("hub")


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("3%", Loss(0.03)),
        (0.5, Loss(0.5)),
        ("0.25", Loss(0.25)),
        ("every 100", Loss(every=100)),
        ("5% in bursts of 4", Loss(0.05, burst=4.0)),
        ("0% in bursts of 4", Loss()),
        (0, Loss()),
        (1, Loss(1.0)),
    ],
)
def test_losses(text: str | float, loss: Loss) -> None:
    assert Loss.parse(text) == loss


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "x%",
        "-1%",
        "101%",
        1.5,
        "nan",
        "every",
        "every 0",
        "every -3",
        "every 2 3",
        "5% in bursts of",
        "5% in bursts of 0.5",
        "5% in bursts of 99",
        "60% in bursts of 2",
        "every in bursts of 4",
    ],
)
def test_losses_that_are_none(text: str | float) -> None:
    with pytest.raises(TopologyError, match="is not a loss"):
        Loss.parse(text)


@pytest.mark.parametrize(("share", "burst"), [(0.05, 4.0), (0.01, 3.0), (0.3, 2.0), (0.5, 50.0)])
def test_losses_in_bursts_are_exactly_that_share_in_rows_of_that_length(share: float, burst: float) -> None:
    rows = []
    for seed in range(200):
        lost = burst_pattern(Loss(share, burst=burst), seed)
        assert len(set(lost)) == len(lost) == round(PATTERN * share)
        assert lost == sorted(lost)
        assert lost[-1] < PATTERN
        rows.append(sum(1 for at in lost if at - 1 not in lost))
    if burst * 10 < PATTERN * share:  # else the last row of a pattern is cut short too often
        assert PATTERN * share * len(rows) / sum(rows) == pytest.approx(burst, rel=0.1)
    assert burst_pattern(Loss(share, burst=burst), 1) != burst_pattern(Loss(share, burst=burst), 2)


def test_losses_by_a_pattern_without_bursts_are_as_chance_makes_them() -> None:
    """Also two in a row: of so many as there are losses in all."""
    share, after = 0.05, 0
    for seed in range(200):
        lost = burst_pattern(Loss(share), seed)
        assert len(set(lost)) == len(lost) == round(PATTERN * share)
        after += sum(1 for at in lost if at - 1 in lost)
    assert after / 200 / (PATTERN * share) == pytest.approx(share, rel=0.15)


def test_rates() -> None:
    assert bits_per_second("10mbit") == 10_000_000
    assert bits_per_second("1.5gbit") == 1_500_000_000
    assert bits_per_second("64kbit") == 64_000
    for text in ("10", "10mbps", "mbit", "-1mbit", "1bit", "9999gbit", "10mbit; reboot"):
        with pytest.raises(TopologyError, match="is not a rate"):
            bits_per_second(text)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.data())
def test_every_machine_reaches_every_segment_without_going_in_circles(parents: list[int], data: st.DataObject) -> None:
    """Any tree of routers and switches, with some more wires between routers, so that there are several ways."""
    kinds = [data.draw(st.sampled_from(["router", "switch"])) for _ in range(len(parents) + 1)]
    ends = {(parent % (child + 1), child + 1) for child, parent in enumerate(parents)}
    routers = [number for number, kind in enumerate(kinds) if kind == "router"]
    if len(routers) > 1:
        more = data.draw(st.lists(st.tuples(st.sampled_from(routers), st.sampled_from(routers)), max_size=5))
        ends |= {(min(pair), max(pair)) for pair in more if pair[0] != pair[1]}
    nodes = {f"n{number}": kind for number, kind in enumerate(kinds)}
    plan = Plan(links(*(f"n{one}-n{other}" for one, other in sorted(ends)), **nodes))
    segments = {port.segment for name in plan.machines for port in plan.ports[name]}
    for name in plan.machines:
        assert {route.segment for route in plan.routes[name]} == segments
        for segment in segments:
            follow(plan, name, segment)
    addresses = [port.addresses[f].ip for name in plan.machines for port in plan.ports[name] for f in (4, 6)]
    assert len(addresses) == len(set(addresses))
