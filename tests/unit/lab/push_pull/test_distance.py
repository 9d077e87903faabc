"""Experiments 1 to 4, and what a router adds: from samples to rows."""

from __future__ import annotations

import pytest
from lab_fakes import named, paper_delay, trips

from ringcast.lab.push_pull import distance


def test_a_router_that_takes_its_time_by_the_byte_is_a_line():
    by_byte = distance.conclude(trips(delay=lambda a, size: paper_delay(a, size) + a.hops * size))
    assert named(by_byte, "delay of one router grows").met is True
    level = distance.conclude(trips(delay=lambda a, size: paper_delay(a, size) + a.hops * (size % 7) * 100))
    assert named(level, "delay of one router grows").met is False


def test_experiments_1_to_4_and_the_routers():
    findings = distance.conclude(trips())
    assert [table.title[:12] for table in findings.tables] == [
        *(f"Experiment {n}" for n in range(1, 5)),
        "Figure 10: w",
    ]
    assert named(findings, "experiment 4, three hops, proxy at publisher, 64 B").value == pytest.approx(16.64)
    assert named(findings, "figure 10, one router, 64 B").value == 2.0
    assert named(findings, "figure 10, two routers, 64 B").value == 4.0
    assert named(findings, "linearly with hops").met is True
    assert named(findings, "a remote proxy costs more than one at the publisher, one hop").met is True
    assert [len(picture.series) for picture in findings.pictures] == [3, 3, 2, 2, 2]


def test_hops_that_cost_less_are_no_line():
    findings = distance.conclude(trips(delay=lambda a, size: {0: 1, 1: 9, 2: 12, 3: 8}[a.hops] * 1000 + size))
    assert named(findings, "linearly with hops").met is False
