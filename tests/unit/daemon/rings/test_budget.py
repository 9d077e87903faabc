"""Which rings fit, and which of those left behind make room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.daemon.rings.budget import Budget
from ringcast.errors import NoSpace


def test_a_ring_that_does_not_fit_is_refused_with_the_figures() -> None:
    budget = Budget(100, max_lingering=10)
    assert budget.admit(1, 60) == []
    with pytest.raises(NoSpace) as refused:
        budget.admit(2, 41)
    assert (refused.value.wanted_bytes, refused.value.free_bytes, refused.value.budget_bytes) == (41, 40, 100)
    assert budget.admit(2, 40) == []
    budget.release(1)
    assert budget.used_bytes == 40


def test_the_oldest_left_behind_goes_first_and_no_more_than_needed() -> None:
    budget = Budget(100, max_lingering=10)
    for ring in (1, 2, 3):
        budget.admit(ring, 30)
    assert budget.linger(2, "a") == []
    assert budget.linger(1, "b") == []
    assert budget.admit(4, 20) == [2]
    assert budget.lingering == 1


def test_a_refusal_evicts_nothing() -> None:
    budget = Budget(100, max_lingering=10)
    budget.admit(1, 60)
    budget.admit(2, 40)
    budget.linger(2, "a")
    with pytest.raises(NoSpace) as refused:
        budget.admit(3, 50)
    assert refused.value.free_bytes == 40
    assert (budget.lingering, budget.used_bytes) == (1, 100)


def test_a_tag_keeps_a_bounded_number_of_rings() -> None:
    budget = Budget(1000, max_lingering=100, max_lingering_per_tag=2)
    for ring in range(4):
        budget.admit(ring, 1)
    assert [budget.linger(ring, "a") for ring in range(4)] == [[], [], [0], [1]]


def test_a_node_keeps_a_bounded_number_of_rings() -> None:
    budget = Budget(1000, max_lingering=2)
    for ring in range(4):
        budget.admit(ring, 1)
    assert [budget.linger(ring, f"tag{ring}") for ring in range(4)] == [[], [], [0], [1]]


@given(st.lists(st.tuples(st.sampled_from(["admit", "linger", "release"]), st.integers(0, 9), st.integers(1, 60))))
def test_the_budget_is_never_exceeded_and_no_live_ring_goes(steps: list[tuple[str, int, int]]) -> None:
    budget = Budget(100, max_lingering=3, max_lingering_per_tag=2)
    live: dict[int, int] = {}
    left: dict[int, int] = {}
    for number, (step, which, size) in enumerate(steps):
        evicted: list[int] = []
        if step == "admit":
            try:
                evicted = budget.admit(number, size)
            except NoSpace:
                assert sum(live.values()) + size > 100
                continue
            live[number] = size
        elif live:
            ring = sorted(live)[which % len(live)]
            if step == "release":
                budget.release(ring)
                del live[ring]
                continue
            left[ring] = live.pop(ring)
            evicted = budget.linger(ring, f"tag{ring % 2}")
        for ring in evicted:
            del left[ring]
        assert budget.used_bytes == sum(live.values()) + sum(left.values()) <= 100
        assert budget.lingering == len(left) <= 3


def test_smaller_limits_send_away_what_was_left_behind_and_nothing_live() -> None:
    budget = Budget(100, max_lingering=10, max_lingering_per_tag=10)
    for ring in (1, 2, 3, 4):
        budget.admit(ring, 25)
    for ring, tag in ((1, "a"), (2, "a"), (3, "b")):
        budget.linger(ring, tag)
    assert budget.limit(100, max_lingering=10, max_lingering_per_tag=1) == [1]
    assert budget.limit(60, max_lingering=10, max_lingering_per_tag=1) == [2]
    assert budget.limit(60, max_lingering=0, max_lingering_per_tag=1) == [3]
    assert budget.limit(10, max_lingering=0, max_lingering_per_tag=1) == []
    assert budget.used_bytes == 25
    with pytest.raises(NoSpace):
        budget.admit(5, 1)
    assert budget.limit(100, max_lingering=5, max_lingering_per_tag=5) == []
    assert budget.admit(5, 75) == []


def test_what_takes_the_place_of_a_live_ring_needs_no_room_beside_it() -> None:
    budget = Budget(100, max_lingering=10)
    budget.admit(1, 60)
    budget.admit(2, 20)
    with pytest.raises(NoSpace):
        budget.admit(3, 81, instead_of=1)
    assert budget.used_bytes == 80
    assert budget.admit(3, 70, instead_of=1) == []
    assert budget.used_bytes == 90
    budget.release(1)  # when its readers have the other
    assert budget.used_bytes == 90
    budget.release(3)
    assert budget.used_bytes == 20
