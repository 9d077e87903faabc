"""What is made of streams that lived through phases on a real network, and of switches between transports."""

from __future__ import annotations

import pytest
from choosers import fits
from lab_fakes import named

from ringcast.adapt.environment import Environment
from ringcast.lab.adaptation import choices
from ringcast.lab.adaptation.living import simulated
from ringcast.lab.adaptation.phases import FIXED as SIMULATED
from ringcast.lab.adaptation.real import (
    ADAPTIVE,
    FIXED,
    SIZE,
    Came,
    Lived,
    RealPhase,
    best_elsewhere,
    came,
    chance,
    phases,
    steady,
)
from ringcast.lab.adaptation.switching import COURSES, LOSS, WEAK, Carried, Course, Switched, conclude
from ringcast.model.priority import rate_bps

CALM, LOSSY = RealPhase("calm", 400), RealPhase("lossy", 1_000, loss=0.05)


def cost(*ms: float, twice: int = 0) -> list[Came]:
    """At so many receivers."""
    return [Came(10, [one] * 10, twice, [[one]] * 4) for one in ms]


def test_what_was_sent_while_a_choice_settled_does_not_count() -> None:
    first = 1_000
    seqs = [*range(first, first + 1_000), first + 999, first + 1_000]
    found = came(LOSSY, first, seqs, [2_000_000] * len(seqs))
    assert found.sent == len(found.latencies_ms) == 700
    assert [len(part) for part in found.stretches] == [70] * 10
    assert found.twice == 1, "the one that belongs to the next phase is none of them"
    assert came(LOSSY, first, [first + 300], [4_000_000]).latencies_ms == [4.0]
    assert came(CALM, 0, [], []).sent == 200, "half of a short phase"
    assert came(CALM, 0, [], []).relate2() == float("inf")


def test_adaptive_stands_beside_the_best_of_each_phase_and_the_best_single_one() -> None:
    lived = Lived(
        {
            ADAPTIVE: [cost(1.0, 1.0), cost(2.0, 2.4)], "a": [cost(1.0, 1.0), cost(4.0, 4.0)],
            "b": [cost(3.0, 3.0), cost(2.0, 2.0, twice=5)],
        },
        [(0.9, "a"), (6.0, "b")], [0.0, 4.0], ["it was calm", "it was not"],
    )  # fmt: skip
    found = choices.conclude([CALM, LOSSY], lived)
    lossy = named(found, "lossy: adaptive")
    assert (lossy.value, lossy.met) == (1.1, False), "5 % is asked for"
    assert named(found, "calm: adaptive").met is True
    assert any(note.endswith("calm: a; lossy: b") for note in found.notes)
    # Against the best: adaptive 1 and 1.1, a 1 and 2, b 3 and 1.
    assert (named(found, "best single").value, named(found, "best single").met) == (0.7, True)
    assert "(a)" in named(found, "best single").name
    assert named(found, "changes of transport").value == 1
    assert named(found, "came twice").met is True, "b is not the one that chose itself"
    (picture,) = [one for one in found.pictures if one.name == "real-choice-over-time"]
    drawn = {one.label: list(one.points) for one in picture.series}
    assert drawn["1: a"] == [(0.9, 1.0), (6.0, 1.0)]
    assert drawn["2: b"] == [(6.0, 2.0), (14.0, 2.0)]
    assert drawn["phase"] == [(0.0, 0.0), (4.0, 0.0), (4.0, -1.0), (14.0, -1.0)]


def test_a_choice_that_is_no_better_than_one_fixed_transport_everywhere_is_missed() -> None:
    costs = {ADAPTIVE: [1.04, 2.04], "a": [1.0, 2.0], "b": [3.0, 3.0], choices.APART: [1.0, 2.0]}
    rows = choices.judged(["calm", "lossy"], costs).rows
    assert [row.met for row in rows] == [True, True, False, None]


def test_what_the_best_costs_is_told_by_others_than_those_that_found_it() -> None:
    """Carriers alike, of which each receiver had luck with another one."""
    lucky = {"a": [0.8, 1.0, 1.1], "b": [1.1, 0.8, 1.0], "c": [1.0, 1.1, 0.8], "d": [3.0, 3.0, 3.0]}
    assert best_elsewhere(lucky) == ["b", "c", "a"], "not the one that it had luck with itself"
    assert best_elsewhere({"a": [1.0, 1.2], "b": [2.0, 2.0]}) == ["a", "a"]
    lived = Lived({name: [cost(*of)] for name, of in lucky.items()})
    assert [one.relate2() for one in lived.of_best(0)] == pytest.approx([1.1, 1.1, 1.1])


def test_what_chose_itself_and_the_best_are_weighed_alike() -> None:
    """Receivers differ: one that costs half is no reason to find a difference where there is none."""
    lived = Lived({name: [cost(0.9, 0.6, 0.9)] for name in (ADAPTIVE, "a")}, [], [0.0])
    assert named(choices.conclude([CALM], lived), "calm: adaptive").value == 1.0


def test_every_transport_that_is_simulated_is_run_for_real_too() -> None:
    assert [simulated(name) for name in FIXED] == list(SIMULATED)
    assert len(set(FIXED)) == len(SIMULATED) == 16


def test_a_thin_link_carries_messages_and_not_three_repairs_with_each() -> None:
    for quick in (False, True):
        (thin,) = [phase for phase in phases(quick) if phase.line]
        line = Environment(
            receivers=thin.receivers, loss_percent=100 * thin.loss, burst=1.0, rate_hz=thin.rate_hz, payload_bytes=SIZE,
            delay_us=50.0, bandwidth_mbit=1e-6 * rate_bps(thin.line or ""), messages=1_000,
        )  # fmt: skip
        assert all(fits(name, line) for name in ("multicast", "multicast+nak", "multicast+parity:r=4,c=2,flush=1s"))
        assert not fits("multicast+parity:r=4,c=3", line, "multicast+parity:r=4,c=3")


def test_how_much_of_a_ratio_is_chance_is_told_by_stretches() -> None:
    steady, also, wavers = (
        [Came(40, stretches=[[ms] * 10 for ms in of])] for of in ([1.0] * 4, [2.0] * 4, [1.0, 3.0, 1.0, 3.0])
    )
    assert chance(also, steady) == 0.0
    assert chance(wavers, steady) == pytest.approx(3**-0.5), "standard deviation of 1, 3, 1, 3 by the root of 4"
    assert chance([*wavers, *also], [*steady, *steady]) == pytest.approx(3**-0.5 / 2), "the mean of both receivers"
    assert chance(wavers, wavers) == 0.0, "what meets both alike is no chance"
    assert chance([Came(40, stretches=[[1.0], [], [1.0], [1.0]])], steady) is None


def test_chance_stands_beside_each_phase() -> None:
    lived = Lived({ADAPTIVE: [cost(1.0)], "a": [cost(1.0)]}, [], [0.0])
    found = choices.conclude([CALM], lived)
    row = named(found, "standard error")
    assert (row.value, row.target) == (0.0, None)
    assert row.name.startswith("real network, calm: ")


def test_ten_minutes_in_which_nothing_changes_may_have_one_change() -> None:
    assert steady().seconds == 600
    for changes, met in ((1, True), (2, True), (3, False)):
        chosen = [(float(at), str(at)) for at in range(changes)]
        (row,) = choices.steady(Lived(chosen=chosen)).rows
        assert row.met is met
    (row,) = choices.steady(Lived()).rows
    assert (row.value, row.met) == (None, False), "nothing was ever chosen"


def test_phases_differ_in_loss_receivers_rate_and_line() -> None:
    full = phases(quick=False)
    assert {phase.loss for phase in full} >= {0.0, 0.01, 0.05}
    assert len({phase.receivers for phase in full}) > 1
    assert len({phase.rate_hz for phase in full}) > 1
    assert {phase.burst for phase in full} == {1.0, 4.0}
    for quick in (False, True):
        assert any(phase.line for phase in phases(quick))


def switched(loss: float, *got: list[int]) -> Switched:
    """Ten messages, of which 4 to 6 may have been carried by multicast."""
    carried = [Carried("nak", 0, 5), Carried("multicast", 4, 6), Carried("nak", 5, 10)]
    return Switched(Course("x", loss, ("nak", "multicast", "nak")), carried, 10, list(got))


def test_only_what_the_weaker_one_carried_may_be_missing_and_only_where_something_is_lost() -> None:
    whole = list(range(10))
    assert switched(LOSS, whole).lost() == 0
    assert switched(LOSS, [0, 1, 2, 3, 6, 7, 8, 9]).lost() == 0
    assert switched(LOSS, [0, 1, 2, 4, 5, 6, 7, 8, 9], whole[:-1]).lost() == 2
    assert switched(0.0, [0, 1, 2, 3, 6, 7, 8, 9]).lost() == 2
    assert switched(LOSS, whole, [*whole, 4]).twice() == 1


def test_a_loss_and_a_duplicate_are_told() -> None:
    found = conclude([switched(LOSS, [0, 0, *range(2, 10)])])
    assert (named(found, "lost that").value, named(found, "lost that").met) == (1, False)
    assert (named(found, "twice").value, named(found, "twice").met) == (1, False)
    assert named(found, "changes").value == 2


def test_courses_end_where_everything_arrives() -> None:
    for course in COURSES:
        assert not course.loss or course.transports[-1] not in WEAK
        assert not course.loss or course.transports[0] not in WEAK
    assert any(set(course.transports) & WEAK for course in COURSES if course.loss)
