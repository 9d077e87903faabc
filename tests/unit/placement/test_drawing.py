"""Drawings: everything is in them, they are well-formed, and the same plan gives the same bytes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ringcast.lab.placement.networks import T, chain, star
from ringcast.placement import Demand, Link, Node, Problem, Subscriber
from ringcast.placement.drawing import amount, svg, text
from ringcast.placement.solve.optimise import optimise


def test_svg_has_every_node_link_and_proxy():
    plan = optimise(star(0.4))
    drawn = svg(plan, "a < b")
    root = ElementTree.fromstring(drawn)
    names = {"svg": "http://www.w3.org/2000/svg"}
    assert len(root.findall("svg:circle", names)) == 5
    assert len(root.findall("svg:line", names)) == 4
    words = [element.text for element in root.iter() if element.text]
    assert "proxy for 1, 2" in words
    assert "publishes star" in words
    assert "a < b" in words
    assert drawn == svg(optimise(star(0.4)), "a < b")


def test_text_follows_the_routes_from_the_publisher():
    assert text(optimise(star(0.4))) == [
        "1 (publishes star)",
        "└─ 2 kB/s ─ 5 ([proxy for 1, 2])",
        "   ├─ 0 B/s ─ 2",
        "   ├─ 333.3 B/s ─ 3 (2: star 1/3)",
        "   └─ 333.3 B/s ─ 4 (1: star 1/3)",
    ]


def test_text_shows_links_outside_the_tree_and_capacities():
    links = (Link("a", "b", bandwidth=5000), Link("a", "c"), Link("b", "c"))
    demand = Demand("t", "a", T, 100, (Subscriber("s", "b", 2, scaled_bytes=10),))
    lines = text(optimise(Problem(tuple(map(Node, "abc")), links, (demand,))))
    assert lines[1] == "├─ 50 B/s of 5 kB/s ─ b (s: t 1/2 10 B)"
    assert lines[-1] == "also b ─ 0 B/s ─ c"


def test_nothing_fits_and_nobody_subscribes():
    for problem in (chain(3, Subscriber("s", "n2", deadline_s=0.01)), chain(2)):
        plan = optimise(problem)
        ElementTree.fromstring(svg(plan))
        assert len(text(plan)) == len(problem.nodes)


@pytest.mark.parametrize(
    ("load", "said"), [(0, "0 B/s"), (950, "950 B/s"), (12500, "12.5 kB/s"), (3.1e6, "3.1 MB/s"), (2e9, "2 GB/s")]
)
def test_amounts(load, said):
    assert amount(load) == said
