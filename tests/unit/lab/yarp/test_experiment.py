"""Rows of paper 003's evaluation, of made-up round trips."""

from ringcast.lab.measuring.samples import Summary
from ringcast.lab.yarp import experiment
from ringcast.lab.yarp.network import Cell

CELL = Cell("card", "udp", "udp", 0.7, "both", 64)


def summary(mean, p99):
    return Summary(100, mean, mean / 2, mean, p99)


def rows(with_, without, idle):
    measured = {
        CELL: with_, CELL._replace(priority="none"): without, CELL._replace(share=0.0): idle
    }  # fmt: skip
    asked = experiment._asked("card", measured)
    return {row.unit: row for row in asked}, experiment._statements("card", measured)


def test_twenty_times_lower_and_close_to_idle():
    asked, statements = rows(summary(2e-4, 3e-4), summary(4e-3, 13e-3), summary(2e-4, 2.5e-4))
    assert asked["times"].met
    assert asked["us"].met
    assert round(asked["us"].target, 1) == 421.1  # 250 + a packet of 1514 bytes at 100 Mbit/s + 50
    assert all(row.met for row in statements)


def test_what_is_missed_is_said():
    asked, statements = rows(summary(4e-3, 2e-3), summary(4e-3, 13e-3), summary(2e-4, 2.5e-4))
    assert not asked["times"].met
    assert not asked["us"].met
    assert statements[0].met  # no higher than without


def test_not_measured_is_not_met():
    row = experiment._asked("card", {CELL: summary(2e-4, 3e-4)})[0]
    assert row.met is False


def test_what_is_judged_by_its_p99_has_a_thousand_samples():
    for quick in (True, False):
        cells = [cell for cell in experiment.cells("card", quick) if cell.priority == "both"]
        judged = [cell for cell in cells if cell.share in (0.0, 0.7)]
        assert judged
        assert all(experiment.count(cell, quick) * experiment.ROUNDS >= 1000 for cell in judged)


def test_every_combination_is_measured_and_quick_is_less():
    whole = experiment.cells("switch", quick=False)
    assert {cell.share for cell in whole} == {0.0, 0.2, 0.7, 0.95}
    assert {(cell.measured, cell.load) for cell in whole} == {(m, n) for m in ("udp", "tcp") for n in ("udp", "tcp")}
    assert {cell.priority for cell in whole} == {"none", "thread", "packet", "both"}
    assert {cell.size for cell in whole} == {64, 4096}
    assert len(set(whole)) == len(whole) > 4 * len(experiment.cells("switch", quick=True))
