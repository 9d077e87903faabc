"""Tables 1 to 3: from samples to rows."""

from __future__ import annotations

import pytest
from lab_fakes import named, paper_delay, trips

from ringcast.lab.push_pull import tables
from ringcast.lab.push_pull.network import INTERMEDIATE, SUBSCRIBER


def test_table_1_asks_for_proxies_that_have_something_to_do():
    findings = tables.conclude(trips())
    for what in ("every other message", "arrays at their own size"):
        near = named(findings, f"proxy at publisher, {what}, against none")
        assert (near.value, near.target, near.met) == (1.0, 1.05, True)
    far = named(findings, "proxy at intermediate node, udp, against none")
    assert far.value == pytest.approx(1 + 5_500 / 12_640, rel=1e-3)
    assert far.reference == pytest.approx(1.555, rel=1e-3)
    assert far.met is True


def test_a_dear_proxy_is_not_met():
    dear = trips(delay=lambda a, size: paper_delay(a, size) * (2 if a.proxy in (SUBSCRIBER, INTERMEDIATE) else 1))
    findings = tables.conclude(dear)
    for what in ("every other message", "arrays at their own size"):
        assert named(findings, f"proxy at subscriber, {what}, against none").met is False
        assert named(findings, f"proxy at publisher, {what}, against none").met is True
    for transport in ("udp", "nak"):
        assert named(findings, f"proxy at intermediate node, {transport}, against none").met is False


def test_a_proxy_that_is_dear_when_it_works_is_not_met():
    findings = tables.conclude(trips(delay=lambda a, size: paper_delay(a, size) + 5_000 * (a.every - 1)))
    assert named(findings, "proxy at publisher, every other message, against none").met is False
    assert named(findings, "proxy at publisher, arrays at their own size, against none").met is True


def test_growth_with_subscribers_and_of_the_proxys_share_is_judged():
    grows = tables.conclude(trips(delay=lambda a, size: paper_delay(a, size) + 2 * size * (a.proxy == INTERMEDIATE)))
    assert named(grows, "grows with subscribers: 8 against 1").met is True
    assert named(grows, "adds grows with length").met is True
    shrinks = tables.conclude(
        trips(delay=lambda a, size: paper_delay(a, size) - 1_500 * a.subscribers - 2 * size * (a.proxy == INTERMEDIATE))
    )
    assert named(shrinks, "grows with subscribers: 8 against 1").met is False
    assert named(shrinks, "adds grows with length").met is False


def test_tables_stand_beside_the_papers_figures():
    table_1, table_2, table_3 = tables.conclude(trips()).tables
    assert table_1.rows[0] == ["no proxy", "12.64", "0.00", "6.0129", "0.0119"]
    assert table_2.heads[1:] == ["64 B", "256 B", "512 B", "1024 B", "1536 B", "1792 B"]
    assert [row[1] for row in table_2.rows] == ["12.64", "5.914", "15.64", "5.975", "19.64", "8.973"]
    assert [row[-1] for row in table_3.rows] == ["35.42", "14.986"]


def test_linear_growth_is_recognised_and_its_absence_too():
    straight = named(tables.conclude(trips()), "linearly with size, no proxy")
    assert (straight.value, straight.met) == (1.0, True)
    flat = tables.conclude(trips(delay=lambda a, size: 20_000 - size))
    assert named(flat, "linearly with size, no proxy").met is False
