"""Response times on a node: examples whose answers are printed in textbooks, and each reason to wait."""

from __future__ import annotations

import math

from ringcast.admission.priorities import Rank
from ringcast.admission.response import Work, response_ns


def tasks(*rows: tuple[int, int]) -> list[Work]:
    """(compute, period), the most important first."""
    return [Work(Rank(0, i, ""), compute, period) for i, (compute, period) in enumerate(rows)]


def responses(all_: list[Work], cores: int = 1, blocking_ns: int = 0) -> list[float]:
    found: list[Work] = []
    for one in all_:
        others = [other for other in all_ if other is not one and other.rank > one.rank] + found
        found.append(one._replace(response_ns=response_ns(one, others, cores, blocking_ns)))
    return [one.response_ns for one in found]


def test_three_tasks_of_burns_and_wellings():
    """Real-Time Systems and Programming Languages: periods 50, 40, 30 with 12, 10, 10; the longest ends at 52, late."""
    assert responses(tasks((10, 30), (10, 40), (12, 50))) == [10, 20, 52]


def test_three_tasks_of_response_3_6_20():
    assert responses(tasks((3, 7), (3, 12), (5, 20))) == [3, 6, 20]


def test_the_first_job_is_not_always_the_slowest():
    """Lehoczky 1990: 26/70 and 62/100; the fifth job of the second takes 118."""
    assert responses(tasks((26, 70), (62, 100))) == [26, 118]


def test_more_than_a_core_has_no_bound():
    assert responses(tasks((6, 10), (5, 10)))[1] == math.inf


def test_a_full_core_has_one():
    assert responses(tasks((5, 10), (10, 20))) == [5, 20]


def test_jitter_of_others_brings_another_job():
    above, own = tasks((2, 10), (9, 40))
    assert response_ns(own, [above]) == 13
    assert response_ns(own, [above._replace(jitter_ns=8)]) == 15


def test_own_jitter_counts_from_the_latest_start():
    """A job that comes right after one that came late is measured from when it could have come itself."""
    own = Work(Rank(0, 0, ""), 6, 10, jitter_ns=9)
    assert response_ns(own, []) == 6


def test_blocking_is_added_once():
    assert responses(tasks((3, 7), (3, 12), (5, 20)), blocking_ns=1)[0] == 4


def test_each_job_that_preempts_costs_a_switch():
    above, below = tasks((2, 10), (5, 40))
    dear = above._replace(switch_ns=1)
    assert response_ns(below, [above]) == 7
    assert response_ns(below, [dear]) == 8
    assert response_ns(dear, [below]) == 2  # nothing to those that it preempts not


def test_on_several_cores_switches_count_although_a_core_is_free():
    above, below = tasks((2, 10), (25, 40))
    dear = above._replace(switch_ns=1, response_ns=2)
    assert response_ns(below, [above], cores=2) == 25
    assert response_ns(below, [dear], cores=2) == 25 + 3  # two jobs in 28, and one that began before


def test_switches_that_fill_a_core_leave_no_bound():
    above, below = tasks((2, 10), (5, 40))
    assert response_ns(below, [above._replace(switch_ns=7)]) == math.inf


def test_lower_priorities_cost_nothing():
    own, below = tasks((3, 7), (4, 8))
    assert response_ns(own, [below]) == 3


def test_a_second_core_takes_what_one_cannot():
    two = tasks((5, 10), (5, 10), (5, 20))
    assert responses(two)[2] == math.inf
    assert responses(two, cores=2)[1] == 5
    assert math.isfinite(responses(two, cores=2)[2])


def test_one_other_thread_cannot_keep_two_cores_busy():
    assert responses(tasks((9, 10), (9, 10)), cores=2) == [9, 9]


def test_all_cores_must_be_busy_for_a_thread_to_wait():
    """The short one fills the second core for 2 of the 9 that the long one fills the first."""
    assert responses(tasks((9, 100), (2, 100), (5, 100)), cores=2) == [9, 2, 7]


def test_a_shared_thread_serves_in_order():
    one, other = (Work(Rank(0, 0, name), 3, 50, thread="delivery") for name in "ab")
    assert response_ns(one, [other]) == 6
    assert response_ns(one, [other], cores=8) == 6


def test_a_shared_thread_that_falls_behind_has_no_bound():
    one = Work(Rank(0, 0, "a"), 3, 5, thread="delivery")
    assert response_ns(one, [one._replace(compute_ns=4)]) == math.inf


def test_who_waits_for_what_has_no_bound_has_none():
    own, above = tasks((1, 10), (1, 10))[::-1]
    assert response_ns(own, [above._replace(jitter_ns=math.inf)]) == math.inf
