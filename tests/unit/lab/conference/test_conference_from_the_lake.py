"""Rows of the conference are computed from what is in the lake: of blocks, participants and pages."""

from __future__ import annotations

import pytest
from lab_fakes import named

from ringcast.conference.headless import Account
from ringcast.lab.conference import experiment, pages, processes
from ringcast.lab.conference.cells import Page, values
from ringcast.lab.measuring.report import Findings
from ringcast.lab.measuring.rows import figure
from ringcast.lab.measuring.sampled import PIPELINES, InPython
from ringcast.record.figures import Measured


def account(participant: int, received: dict[int, int], delays_ms: list[float], late: int = 0) -> Account:
    return Account(
        name=f"speaker {participant}", node="a", participant=participant, sent=10, late=late, delays_ms=delays_ms,
        received={f"{other:08x}": blocks for other, blocks in received.items()},
    )  # fmt: skip


CROWD = [
    account(1, {2: 10, 3: 9}, [1.0] * 19, late=2),
    account(2, {1: 10, 3: 10}, [*[2.0] * 15, *[7.0] * 5]),
    account(3, {1: 10, 2: 7}, [3.0] * 16 + [40.0]),
]


def of_pages() -> list[Measured]:
    thin, reader, two = Page(pages.THIN_LINK, 20.0), Page(pages.SLOW_READER, 5.0), Page(pages.TWO_PAGES, 10.0)
    return [
        *values(two, "delay", range(1, 101), "ms"), *values(Page(pages.STALLED, 1.0), "back", [1.5], "s"),
        *values(reader, "grown", [0.0, 3.0, 2.0], "MiB"), *values(reader, "sent", [200], "messages"),
        *values(reader, "got", [20], "messages"), *values(reader, "told_lost", [150], "messages"),
        *values(reader, "lost", [1], "messages"),
        *values(thin, "strength", [0.01, 0.3], "of full scale"), *values(thin, "said_thin", [True], "yes"),
        *values(thin, "lost", [0], "blocks"),
    ]  # fmt: skip


def test_blocks_of_a_crowd_are_added_up_and_delays_are_those_of_the_worst_listener() -> None:
    found = Findings(processes.judged(InPython(processes.measured(CROWD))))
    assert [row.value for row in found.rows] == [3, 4, 2, 40.0, 40.0]
    assert named(found, "blocks lost").name == "blocks lost, of 56"
    assert named(found, "blocks lost").met is named(found, "blocks late").met is False


def test_a_participant_leaves_a_bounded_number_of_delays_with_the_longest_among_them() -> None:
    many = [account(1, {}, [float(n) for n in range(20_000)])]
    delays = [one.value for one in processes.measured(many) if one.metric == "delay"]
    assert len(delays) == processes.DELAYS
    assert (min(delays), max(delays)) == (0.0, 19_999.0)
    (p95,) = (row.value for row in processes.judged(InPython(processes.measured(many))) if "p95" in row.name)
    assert p95 == pytest.approx(19_000, rel=0.01)


def test_pages_are_judged_by_their_samples() -> None:
    found = Findings(pages.judged(InPython(of_pages())))
    for words, value, met in (
        ("two pages, p95", 96.0, False), ("two pages, p50", 51.0, None), ("a block more", 128.0, None),
        ("stood still for 1000 ms", 1.5, True), ("memory grew by", 3.0, True), ("what it got", 10.0, None),
        ("told that it lost", 75.0, None), ("another subscriber lost", 1.0, False), ("loudest tone", 0.3, True),
        ("its link is thin", 1.0, True), ("near side of the link", 0.0, True),
    ):  # fmt: skip
        row = named(found, words)
        assert (row.value, row.met) == (value, met), words


def test_a_thin_link_over_which_nothing_came_has_not_met_its_delay() -> None:
    row = named(Findings(pages.judged(InPython(of_pages()))), "delay after 20 s")
    assert (row.value, row.met) == (None, False)


def test_what_spark_says_takes_the_place_of_what_was_said_and_the_rest_stays() -> None:
    assert experiment.PIPELINES == PIPELINES
    names = [row.name for row in (*processes.judged(InPython(processes.measured(CROWD))),
                                  *pages.judged(InPython(of_pages())))]  # fmt: skip
    findings = Findings([figure(name, -1.0, "") for name in (*names, "not in the lake")])
    experiment.conclude(findings, InPython([*processes.measured(CROWD), *of_pages()]))
    assert [row.name for row in findings.rows] == [*names, "not in the lake"]
    assert [row.value for row in findings.rows].count(-1.0) == 1
    before = list(findings.rows)
    experiment.conclude(findings, InPython([]))  # a lake without them
    assert findings.rows == before
