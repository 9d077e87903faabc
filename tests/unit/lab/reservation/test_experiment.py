"""Rows of paper 001's experiment 5, of made-up round trips."""

from ringcast.lab.measuring.samples import Summary
from ringcast.lab.reservation.experiment import Point, judged, points
from ringcast.lab.yarp.network import RESERVED


def summary(p99):
    return Summary(100, p99 / 2, p99 / 4, p99 / 2, p99)


def test_hogs_alone_and_hogs_with_traffic_are_judged_apart():
    measured = {
        Point(1.0, 0.0, 64, "none", "publisher"): summary(11e-3),
        Point(1.0, 0.0, 64, "reserved", "publisher"): summary(1e-3),
        Point(1.0, 1.0, 64, "none", "publisher"): summary(4e-3),
        Point(1.0, 1.0, 64, "reserved", "publisher"): summary(1e-3),
        Point(0.0, 0.0, 64, "none", "publisher"): summary(5e-4),
    }
    rows = judged(measured)
    assert [(row.value, row.target, row.met) for row in rows] == [
        (11, 10, True), (4, 5, False), (8, 5, True), (2, None, None), (500, None, None),
    ]  # fmt: skip


def test_the_papers_comparison_is_with_nobody_competing():
    """Its 5 to 10 times are delays without reservation beside the competition, by those of experiment 3."""
    with_, without = (Point(1.0, 1.0, 64, priority, "subscriber") for priority in ("reserved", "none"))
    found = {with_: summary(1e-3), without: summary(9e-3), Point(0.0, 0.0, 64, "none", "subscriber"): summary(3e-3)}
    (paper,) = (row for row in judged(found) if "paper: 5 to 10" in row.name)
    assert (paper.value, paper.met) == (3, False)
    del found[Point(0.0, 0.0, 64, "none", "subscriber")]
    (paper,) = (row for row in judged(found) if "paper: 5 to 10" in row.name)
    assert paper.met is False  # what it is compared with was not measured


def test_not_measured_is_not_met():
    (row,) = judged({Point(1.0, 0.0, 64, "reserved", "publisher"): summary(1e-3)})
    assert row.met is False


def test_utilisation_goes_up_to_all_of_it_with_the_sizes_of_experiment_3_and_a_proxy_at_either_end():
    whole = points(quick=False)
    assert {point.hogs for point in whole} == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert {point.traffic for point in whole} == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert {point.size for point in whole} == {1, 64, 256, 512, 1024, 1536, 1792}
    for quick in (True, False):
        assert {point.proxy for point in points(quick)} == {"publisher", "subscriber"}
    assert len(set(whole)) == len(whole)
    assert Point(1.0, 0.0, 64, "reserved", "publisher") in points(quick=True)


def test_a_reservation_is_of_processors_and_of_links():
    assert RESERVED["sched"].startswith("deadline:")
    assert RESERVED["bandwidth"]
