"""What `lab run bounds` concludes, of task sets that were made up."""

from __future__ import annotations

import msgspec
import pytest

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.model import Cost, Costs
from ringcast.admission.verdict import judge
from ringcast.lab.bounds.experiment import Outcome, conclude_sets
from ringcast.lab.bounds.parts import Message, computed, measured
from ringcast.lab.bounds.running import Measured, judged
from ringcast.lab.bounds.task_sets import NODE, task_set
from ringcast.lab.measuring import files

COSTS = Costs(publish=Cost(fixed_s=1e-5), deliver=Cost(fixed_s=1e-5))
FOUND = Calibration(
    Machine("", 2, "", ""), COSTS, blocking_s=1e-4, measured_at="", realtime=True, preemption_s=2e-5, waking_s=3e-5
)


def outcome(share: float, seed: int = 1, missing: int = 0) -> Outcome:
    """Every message takes that share of the bound."""
    system = next(made for made in (task_set(i, 2, FOUND) for i in range(seed, 500)) if judge(made).admitted)
    verdict = judge(system)
    delays = [round(one.bound_s * share * 1e9) for one in verdict.judged]
    seen = [
        Measured(one.tag, (Message(0, delay // 2, delay // 2, delay, 0, 0),), 2, missing)
        for one, delay in zip(verdict.judged, delays, strict=True)
    ]
    return Outcome(system, verdict, seen)


def rows(*outcomes: Outcome) -> dict[str, tuple[float | None, bool | None]]:
    return {row.name: (row.value, row.met) for row in conclude_sets(outcomes).rows}


def test_what_is_within_its_bound():
    found = rows(outcome(0.5))
    assert found["messages of admitted streams that took longer than their bound"] == (0, True)
    assert found["share of the feasible task sets that are admitted"] == (1, True)
    assert found["measured maximum as a share of the bound, median of admitted streams"] == (pytest.approx(0.5), True)


def test_what_exceeds_its_bound_is_counted():
    value, met = rows(outcome(1.1))["messages of admitted streams that took longer than their bound"]
    assert value == len(outcome(1.1).system.streams)
    assert met is False


def test_a_loose_bound_is_not_met():
    assert rows(outcome(0.1))["measured maximum as a share of the bound, median of admitted streams"][1] is False


def test_what_never_came_is_counted_and_not_feasible():
    found = rows(outcome(0.5, missing=3))
    assert found["messages of admitted streams that never came"][1] is False
    assert found["share of the feasible task sets that are admitted"] == (None, False)


def test_messages_during_which_a_core_was_taken_away_are_left_out():
    rows = [[began, began + 4, began + 5, began + 10, 0, 0] for began in (0, 20, 40)]
    seen = judged("t", rows, [(29, 35)], count=4)
    assert [one.began for one in seen.messages] == [0, 40]
    assert (seen.disturbed, seen.missing) == (1, 1)


def test_parts_add_up_to_the_delay_and_to_the_bound():
    system = outcome(0.5).system
    bounds = {one.tag: one.bound_s for one in judge(system).judged}
    for stream in system.streams:
        assert computed(system)[stream.tag].whole == pytest.approx(bounds[stream.tag])
        work = round(stream.compute_s * 1e9), round(stream.subscribers[0].compute_s * 1e9)
        message = Message(1000, 1000 + work[0] + 70, 0, 1000 + sum(work) + 150, before=30, after=50)
        parts = measured(message, stream)
        assert parts.whole == pytest.approx(message.delay / 1e9)
        assert (parts.starts, parts.behind, parts.handed_over) == pytest.approx((40e-9, 80e-9, 30e-9), abs=2e-9)


def test_the_term_that_is_too_small_is_shown():
    made = outcome(0.5)
    stream, bounds = made.system.streams[0], computed(made.system)
    (reader,) = stream.subscribers
    behind = round((bounds[stream.tag].behind + 0.001) * 1e9)
    sent = round(stream.compute_s * 1e9) + behind
    late = Message(0, sent, sent, sent + round(reader.compute_s * 1e9), before=behind, after=0)
    first = msgspec.structs.replace(made.measured[0], messages=(late,))
    findings = conclude_sets([made._replace(measured=[first, *made.measured[1:]])])
    found = {row.name: row.value for row in findings.rows}
    assert found["longest beyond what was computed: behind others"] == pytest.approx(1000, rel=0.01)
    (table,) = [table for table in findings.tables if "of their bound or more" in table.title]
    assert table.rows[0][1] == stream.tag


def test_sets_are_the_same_for_the_same_seed_and_fit_the_node():
    for seed in range(50):
        made = task_set(seed, 2, FOUND)
        assert made == task_set(seed, 2, FOUND)
        busy = sum((one.compute_s + one.subscribers[0].compute_s) / one.period_s for one in made.streams)
        assert busy <= 2
        assert {one.node for one in made.streams} == {NODE}
        for one in made.streams:
            assert one.compute_s + one.subscribers[0].compute_s < one.deadline_s <= one.period_s


def test_most_sets_fit_a_node_that_waits_little_and_some_do_not():
    verdicts = [judge(task_set(seed, 2, FOUND)).admitted for seed in range(40)]
    assert 20 <= sum(verdicts) < 40


def test_it_leaves_report_rows_and_a_picture(tmp_path):
    left = files.write(conclude_sets([outcome(0.5)]), tmp_path / "new", "ringcast lab run bounds --quick")
    assert {path.name for path in left} == {"report.md", "rows.json", "measured-and-bound.svg"}
