"""Rows of paper 003's evaluation, of made-up round trips."""

from ringcast.lab.measuring.samples import Summary
from ringcast.lab.yarp import experiment
from ringcast.lab.yarp.network import Cell, switch_queues

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


def test_the_difference_between_protocols_is_that_of_messages_of_one_size():
    measured = {}
    for size, protocols in ((64, (1e-3, 2e-3)), (4096, (5e-3, 5.5e-3))):
        for protocol, mean in zip(("udp", "tcp"), protocols, strict=True):
            cell = Cell("switch", protocol, "udp", 0.7, "both", size)
            measured[cell] = summary(mean, mean)
            measured[cell._replace(priority="none")] = summary(3 * mean, mean)
    found = [row for row in experiment._statements("switch", measured) if "difference between protocols" in row.name]
    assert [(round(row.value), round(row.target)) for row in found] == [(1000, 3000), (500, 1500)]


def test_bars_have_the_p99_too():
    measured = {CELL: summary(2e-3, 7e-3)}
    mean, tail = experiment._bars("card", measured)
    assert (mean.name, tail.name) == ("figure-5-card-70", "figure-5-card-70-p99")
    assert [series.points for series in tail.series if series.points] == [[(0.0, 7.0)]]


def test_the_switch_is_measured_over_ipv6_too():
    for quick in (True, False):
        cells = experiment.cells("switch-ipv6", quick)
        assert {(cell.measured, cell.share, cell.priority) for cell in cells} == {
            (m, share, p) for m in ("udp", "tcp") for share in (0.0, 0.7) for p in ("none", "both")
        }  # fmt: skip
    assert "switch-ipv6" in experiment.CASES


def test_a_flood_must_have_been_one():
    quiet, flooded = [[1e-3] * 100], [[2.5e-3] * 100]
    assert [row.met for row in experiment.flood_judged(quiet, flooded, 50, 9)] == [True, True, True]
    assert [row.met for row in experiment.flood_judged(quiet, [[4e-3] * 100], 50, 9)] == [False, True, True]
    assert [row.met for row in experiment.flood_judged(quiet, flooded, 0, 0)] == [True, False, False]
    assert experiment.flood_judged(quiet, [[]], 1, 1)[0].met is False


def test_the_switch_has_classes_by_either_queue():
    for hfsc, words in ((False, "htb rate 95mbit ceil 100mbit prio 0"), (True, "hfsc rt rate 95mbit ls rate 95mbit")):
        script = switch_queues("to-b", hfsc)
        assert f"classid 1:10 {words}" in script
        assert script.count("protocol ipv6 u32 match ip6 priority") == 2
        assert ("hfsc" in script, "htb" in script) == (hfsc, not hfsc)
