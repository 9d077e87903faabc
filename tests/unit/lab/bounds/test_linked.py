"""Task sets over a link, and what is said of those that ran."""

from __future__ import annotations

from ringcast.admission.calibration import Calibration, Machine
from ringcast.admission.checks import check
from ringcast.admission.model import Cost, Costs
from ringcast.admission.verdict import judge
from ringcast.lab.bounds.experiment import Outcome, linked_rows
from ringcast.lab.bounds.parts import Message
from ringcast.lab.bounds.running import Measured
from ringcast.lab.bounds.task_sets import LINK_RATE, MOST_LINKED, linked_set

COST = Cost(fixed_s=5e-5)
FOUND = Calibration(
    Machine("p", 2, "k", "v"), Costs(publish=COST, send=COST, receive=COST, deliver=COST), 1e-4, "now", True
)


def test_sets_make_sense_and_some_are_admitted_and_others_not():
    sets = [check(linked_set(seed, FOUND)) for seed in range(20)]
    assert [linked_set(seed, FOUND) for seed in range(20)] == sets
    assert {len(one.streams) for one in sets} == {2, MOST_LINKED}
    for one in sets:
        assert {(node.cores, node.card) for node in one.nodes} == {(1, LINK_RATE)}
        assert all(stream.node != reader.node for stream in one.streams for reader in stream.subscribers)
    admitted = [judge(one).admitted for one in sets]
    assert 4 < sum(admitted) < 20


def measured(tag: str, delay_s: float, missing: int = 0) -> Measured:
    took = round(delay_s * 1e9)
    return Measured(tag, (Message(0, 0, 0, took, 0, 0),), 0, missing)


def outcome(share_of_bound: float, missing: int = 0) -> Outcome:
    system = next(found for found in (linked_set(seed, FOUND) for seed in range(20)) if judge(found).admitted)
    verdict = judge(system)
    return Outcome(
        system, verdict, [measured(one.tag, one.bound_s * share_of_bound, missing) for one in verdict.judged]
    )


def test_a_message_beyond_its_bound_is_counted():
    rows = linked_rows([outcome(0.5, missing=1)])
    assert (rows[0].value, rows[0].met, rows[1].value) == (0, True, 0.5)
    assert rows[3].value == len(outcome(0.5).measured)
    assert linked_rows([outcome(1.01)])[0].met is False


def test_nothing_admitted_is_not_met():
    assert linked_rows([])[0].met is False
