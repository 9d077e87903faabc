"""What places cost, counted by hand; delays and age; routes and their ties."""

from __future__ import annotations

import dataclasses

import pytest

from ringcast.lab.placement.instances import small
from ringcast.lab.placement.networks import SCALED, F, T, chain, star
from ringcast.placement import Costs, Demand, Link, Node, Problem, Subscriber, delay
from ringcast.placement.case import Case
from ringcast.placement.charges import loads
from ringcast.placement.routes import Routes

COSTS = Costs(in_s=1.0, out_s=10.0, scale_s=100.0)


def of(charge, places, problem=None):
    case = Case(dataclasses.replace(problem or star(), charge=charge, costs=COSTS))
    return loads(case, [case.routes.number[place] for place in places])


@pytest.mark.parametrize(
    ("charge", "links"),
    [
        # Links 1-5, 2-5, 3-5, 4-5; the proxy on the hub.
        ("unicast", [2 * F, 0, SCALED, SCALED]),
        ("sent", [F, 0, SCALED, SCALED]),
        ("multicast", [F, 0, SCALED, SCALED]),
    ],
)
def test_links_with_the_proxy_on_the_hub(charge, links):
    assert of(charge, "55").links == pytest.approx(links)


@pytest.mark.parametrize(("charge", "first"), [("unicast", 2 * SCALED), ("sent", 2 * SCALED), ("multicast", SCALED)])
def test_the_publishers_link_with_the_proxy_at_the_publisher(charge, first):
    assert of(charge, "11").links == pytest.approx([first, 0, SCALED, SCALED])


def test_sent_goes_to_each_proxy_and_multicast_once():
    assert of("sent", "43").links == pytest.approx([2 * F, 0, F, F])
    assert of("multicast", "43").links == pytest.approx([F, 0, F, F])


@pytest.mark.parametrize(
    ("charge", "publisher", "hub"),
    [
        ("unicast", 2 * 10 * 10, 2 * (10 * 1 + 10 / 3 * 100 + 10 / 3 * 10)),
        # One stage for equal demands; the hub sends to two nodes.
        ("sent", 10 * 10, 10 * 1 + 10 / 3 * 100 + 2 * 10 / 3 * 10),
        ("multicast", 10 * 10, 10 * 1 + 10 / 3 * 100 + 10 / 3 * 10),
    ],
)
def test_cpu_of_publisher_hub_and_subscriber(charge, publisher, hub):
    nodes = of(charge, "55").nodes
    assert nodes[0] == pytest.approx(publisher)
    assert nodes[4] == pytest.approx(hub)
    assert nodes[2] == nodes[3] == pytest.approx(10 / 3 * 1)
    assert nodes[1] == 0


def test_who_wants_all_shares_with_proxies():
    subscribers = (Subscriber("all", "n2"), Subscriber("some", "n2", 4))
    problem = chain(3, *subscribers)
    for charge in ("sent", "multicast"):
        assert of(charge, ["n0", "n2"], problem).links == pytest.approx([F, F])
        assert of(charge, ["n0", "n0"], problem).links == pytest.approx([F + F / 4] * 2)


def test_a_way_there_and_back_loads_a_link_twice():
    case = Case(star())
    assert loads(case, [1, 1]).links == pytest.approx([2 * F, 2 * F + 2 * SCALED, SCALED, SCALED])


def test_size_and_factor_scale_the_rate():
    problem = chain(2, Subscriber("s", "n1", 5, scaled_bytes=20))
    assert of("unicast", ["n0"], problem).links == pytest.approx([20 / (5 * T)])


def test_delay_has_parts_and_age_is_another_thing():
    links = (Link("n0", "n1", latency_s=0.01), Link("n1", "n2", latency_s=0.02))
    case = Case(chain(3, Subscriber("s", "n2", 4), links=links))
    found = delay.worst_case(case, case.streams[0], 1)
    assert (found.full_s, found.scaled_s, found.latency_s) == pytest.approx((T, 4 * T, 0.03))
    assert delay.age_s(case.streams[0], found) == pytest.approx(4 * T + 5 * T + 0.03)


@pytest.mark.parametrize(("proxy", "expected"), [(0, 4 * 6), (3, 3 * 1 + 3 * 4), (6, 6 * 1)])
def test_worst_case_of_the_paper(proxy, expected):
    case = Case(chain(7, Subscriber("s", "n6", 4)))
    assert delay.worst_case(case, case.streams[0], proxy).total_s == pytest.approx(expected * T)


def test_measured_delay_adds_what_ends_and_wire_take():
    links = (Link("n0", "n1", bandwidth=1000, latency_s=0.01), Link("n1", "n2", latency_s=0.02))
    case = Case(chain(3, Subscriber("s", "n2", 4, scaled_bytes=50), links=links, costs=Costs(0.1, 0.2, 0.4)))
    stream = case.streams[0]
    assert delay.measured(case, stream, 1).total_s == pytest.approx(0.2 + 0.1 + 0.1 + 0.4 + 0.2 + 0.1 + 0.03)
    assert delay.measured(case, stream, 0).total_s == pytest.approx(0.4 + 0.2 + 0.05 + 0.1 + 0.03)
    assert delay.measured(case, stream, 2).total_s == pytest.approx(0.2 + 0.1 + 0.1 + 0.4 + 0.03)


def test_a_sum_of_floats_meets_its_deadline():
    assert delay.in_time(0.1 + 0.2, 0.3)
    assert not delay.in_time(0.301, 0.3)


def routes(*links: Link) -> Routes:
    return Routes(tuple(Node(name) for name in "abcd"), links)


def test_fewest_hops_then_least_latency_then_not_the_last_link():
    square = [Link("a", "b"), Link("b", "d"), Link("a", "c"), Link("c", "d")]
    assert routes(*square).nodes(0, 3) == (0, 1, 3)
    assert routes(*reversed(square)).nodes(0, 3) == (0, 2, 3)
    slow = [dataclasses.replace(square[0], latency_s=0.1), *square[1:]]
    assert routes(*slow).nodes(0, 3) == (0, 2, 3)
    direct = [*square, Link("a", "d", latency_s=9.0)]
    assert routes(*direct).nodes(0, 3) == (0, 3)


@pytest.mark.parametrize("number", range(30))
def test_routes_are_the_same_both_ways_and_so_are_their_parts(number):
    problem: Problem = small(number, seed=5)
    found = Routes(problem.nodes, problem.links)
    for a in range(len(problem.nodes)):
        for b in range(len(problem.nodes)):
            way = found.nodes(a, b)
            assert found.nodes(b, a) == way[::-1]
            assert len(found.links(a, b)) == len(way) - 1 == found.hops(a, b)
            for middle in range(len(way)):
                assert found.nodes(a, way[middle]) == way[: middle + 1]


def test_demands_of_two_tags_share_nothing():
    demands = tuple(Demand(tag, "1", T, 100, (Subscriber("s", "3", 3),)) for tag in "xy")
    assert of("multicast", "55", star(demands=demands)).links == pytest.approx([2 * F, 0, 2 * SCALED, 0])
