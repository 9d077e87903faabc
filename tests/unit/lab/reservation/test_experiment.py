"""Rows of paper 001's experiment 5, of made-up round trips."""

from ringcast.lab.measuring.samples import Summary
from ringcast.lab.reservation.experiment import Point, judged, points


def summary(p99):
    return Summary(100, p99 / 2, p99 / 4, p99 / 2, p99)


def test_hogs_alone_and_hogs_with_traffic_are_judged_apart():
    measured = {
        Point(1.0, 0.0, 64, "none"): summary(11e-3), Point(1.0, 0.0, 64, "reserved"): summary(1e-3),
        Point(1.0, 0.7, 64, "none"): summary(4e-3), Point(1.0, 0.7, 64, "reserved"): summary(1e-3),
        Point(0.0, 0.0, 64, "none"): summary(1e-4),
    }  # fmt: skip
    rows = judged(measured)
    assert [(row.value, row.target, row.met) for row in rows] == [(11, 10, True), (4, 5, False), (100, None, None)]


def test_not_measured_is_not_met():
    (row,) = judged({Point(1.0, 0.0, 64, "reserved"): summary(1e-3)})
    assert row.met is False


def test_utilisation_goes_up_to_all_of_it_with_the_sizes_of_experiment_3():
    whole = points(quick=False)
    assert {point.hogs for point in whole} == {0.0, 0.25, 0.5, 0.75, 1.0}
    assert {point.size for point in whole} == {1, 64, 256, 512, 1024, 1536, 1792}
    assert len(set(whole)) == len(whole)
    assert Point(1.0, 0.0, 64, "reserved") in points(quick=True)
