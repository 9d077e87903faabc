"""Links: the formulae of network calculus, by hand."""

from __future__ import annotations

import math

import pytest

from ringcast.admission import Link
from ringcast.admission.queueing import Flow, bucket, delay_ns

LINK = Link(a="a", b="b", bandwidth=1e6, latency_s=1e-3, mtu=962)
"""A packet is 1000 bytes on the wire and takes 1 ms."""
LOWEST = 3


def test_a_lone_flow_waits_for_one_begun_packet():
    assert delay_ns(Flow(0, 500, 0), [], LINK, LOWEST) == pytest.approx(1e6 + 1e6 + 0.5e6)


def test_equal_class_is_served_in_order():
    assert delay_ns(Flow(1, 500, 0), [Flow(1, 2000, 0)], LINK, LOWEST) == pytest.approx(1e6 + 1e6 + 2.5e6)


def test_a_higher_class_takes_its_rate_away():
    """(burst above + packet + own) / (1e6 - 5e5)"""
    assert delay_ns(Flow(1, 500, 0), [Flow(0, 2000, 5e5)], LINK, LOWEST) == pytest.approx(1e6 + 3500 / 5e5 * 1e9)


def test_a_lower_class_costs_one_packet():
    assert delay_ns(Flow(0, 500, 0), [Flow(2, 1e6, 9e5)], LINK, LOWEST) == pytest.approx(2.5e6)


def test_a_link_without_priorities_makes_all_wait():
    plain = Link(a="a", b="b", bandwidth=1e6, mtu=962, priorities=False)
    assert delay_ns(Flow(0, 500, 0), [Flow(2, 10_000, 0)], plain, LOWEST) == pytest.approx(11.5e6)


def test_a_full_link_has_no_bound():
    assert delay_ns(Flow(1, 1, 6e5), [Flow(0, 1, 5e5)], LINK, LOWEST) == math.inf
    assert delay_ns(Flow(1, 1, 1), [Flow(0, 1, 1e6)], LINK, LOWEST) == math.inf


def test_jitter_and_losses_lengthen_a_burst():
    assert bucket(0, 1000, 10_000_000, 0) == Flow(0, 1000, 1e5)
    assert bucket(0, 1000, 10_000_000, 5_000_000).burst_bytes == pytest.approx(1500)
    assert bucket(0, 1000, 10_000_000, 0, losses=1) == Flow(0, 2000, 2e5)


def test_bytes_on_the_wire():
    link = Link(a="a", b="b", bandwidth=1e6)
    assert link.wire_bytes(64) == 64 + 134
    assert link.wire_bytes(1404) == 1404 + 134
    assert link.wire_bytes(1405) == 1405 + 2 * 134
