"""What `lab run bounds` concludes, of task sets that were made up."""

from __future__ import annotations

import pytest

from ringcast.admission.model import Cost, Costs
from ringcast.admission.verdict import judge
from ringcast.lab.bounds.experiment import Outcome, conclude_sets
from ringcast.lab.bounds.running import Measured, judged
from ringcast.lab.bounds.task_sets import NODE, task_set
from ringcast.lab.measuring import files

COSTS = Costs(publish=Cost(fixed_s=1e-5), deliver=Cost(fixed_s=1e-5))


def outcome(share: float, seed: int = 1, missing: int = 0) -> Outcome:
    """Every message takes that share of the bound."""
    system = next(
        made for made in (task_set(i, 2, COSTS, 1e-4) for i in range(seed, 500)) if judge(made).admitted
    )  # fmt: skip
    verdict = judge(system)
    seen = [Measured(one.tag, (round(one.bound_s * share * 1e9),), 2, missing) for one in verdict.judged]
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
    seen = judged("t", [[0, 10], [20, 30], [40, 50]], [(29, 35)], count=4)
    assert seen == Measured("t", (10, 10), disturbed=1, missing=1)


def test_sets_are_the_same_for_the_same_seed_and_fit_the_node():
    for seed in range(50):
        made = task_set(seed, 2, COSTS, 1e-4)
        assert made == task_set(seed, 2, COSTS, 1e-4)
        busy = sum((one.compute_s + one.subscribers[0].compute_s) / one.period_s for one in made.streams)
        assert busy <= 2
        assert {one.node for one in made.streams} == {NODE}
        for one in made.streams:
            assert one.compute_s + one.subscribers[0].compute_s < one.deadline_s <= one.period_s


def test_most_sets_fit_a_node_that_waits_little_and_some_do_not():
    verdicts = [judge(task_set(seed, 2, COSTS, 1e-4)).admitted for seed in range(40)]
    assert 20 <= sum(verdicts) < 40


def test_it_leaves_report_rows_and_a_picture(tmp_path):
    left = files.write(conclude_sets([outcome(0.5)]), tmp_path / "new", "ringcast lab run bounds --quick")
    assert {path.name for path in left} == {"report.md", "rows.json", "measured-and-bound.svg"}
