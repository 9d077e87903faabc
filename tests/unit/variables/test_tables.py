"""Encoder and decoder against a plain model: whatever is changed, removed or lost, a full packet makes it right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from variables_model import NAMES, Model, agrees, values

from ringcast import _core

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), values, st.integers(0, 2**62)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
        st.tuples(st.just("cycle"), st.sets(st.integers(0, 30))),
        st.tuples(st.just("full"), st.sets(st.integers(0, 30))),
    ),
    max_size=40,
)


def deliver(mirror: _core.VariableTable, chunks: list[bytes], lost: set[int]) -> None:
    _, _, bad = mirror.apply([chunk for number, chunk in enumerate(chunks) if number not in lost])
    assert bad == 0


def play(owner: Model, mirror: _core.VariableTable, step: tuple[Any, ...], lossy: bool) -> None:
    match step:
        case ("put", name, value, time_ns):
            owner.put(name, value, time_ns)
        case ("remove", name):
            owner.remove(name)
        case (what, lost):
            deliver(mirror, owner.packet(what == "full"), lost if lossy else set())


@settings(max_examples=150, deadline=None)
@given(steps=steps)
def test_without_loss_a_mirror_has_what_its_owner_has_after_every_cycle(steps: list[tuple[Any, ...]]) -> None:
    owner, mirror = Model(), _core.VariableTable()
    for step in steps:
        play(owner, mirror, step, lossy=False)
        if step[0] in ("cycle", "full"):
            agrees(mirror, owner.values)


@settings(max_examples=150, deadline=None)
@given(steps=steps)
def test_whatever_is_lost_a_mirror_is_right_after_a_full_packet(steps: list[tuple[Any, ...]]) -> None:
    owner, mirror = Model(), _core.VariableTable()
    for step in steps:
        play(owner, mirror, step, lossy=True)
    deliver(mirror, owner.packet(full=True), set())
    agrees(mirror, owner.values)
    assert mirror.complete or not owner.values


@settings(max_examples=60, deadline=None)
@given(data=st.data(), lost=st.integers(0, 20))
def test_a_lost_chunk_costs_its_own_variables_only(data: st.DataObject, lost: int) -> None:
    owner, mirror = Model(), _core.VariableTable()
    for number, name in enumerate(NAMES):
        owner.put(name, 0.0, number)
    deliver(mirror, owner.packet(full=True), set())
    for name in data.draw(st.sets(st.sampled_from(NAMES), min_size=1)):
        owner.put(name, 1.0, 10**6)
    chunks = owner.packet(full=False, limit=90)
    missed = _core.VariableTable()
    deliver(missed, Model.packet(owner, full=True), set())
    without = [chunk for number, chunk in enumerate(chunks) if number != lost]
    indices, _, _ = mirror.apply(without)
    assert sorted(mirror.names()) == sorted(NAMES)
    told = {mirror.name(index) for index in indices.tolist()}
    for name in NAMES:
        new = owner.values[name][0] == 1.0
        assert mirror.get(name) == (1.0 if name in told else 0.0)
        assert new or name not in told


def test_a_name_twice_and_a_value_of_another_type_are_refused_with_the_remedy() -> None:
    table = _core.VariableTable()
    table.add("n", 1)
    with pytest.raises(ValueError, match=r"'n' is there already, as int; remove it first"):
        table.add("n", 2.0)
    for wrong in (1.5, "x", None, True, np.zeros(2)):
        with pytest.raises(TypeError, match="variable 'n' is an int"):
            table.set("n", wrong)
    assert table.get("n") == 1
    with pytest.raises(ValueError, match="segments"):
        table.add("a//b", 1.0)
    with pytest.raises(ValueError, match="publish it on a tag of its own"):
        table.add("long", "x" * 20_000)
    with pytest.raises(OverflowError):
        table.set("n", 2**70)


def test_a_removed_variable_does_not_come_back_with_an_old_packet() -> None:
    owner, mirror = Model(), _core.VariableTable()
    owner.put("v", 1.0, 1)
    old = owner.packet(full=True)
    deliver(mirror, old, set())
    owner.remove("v")
    deliver(mirror, owner.packet(full=False), set())
    deliver(mirror, old, set())
    assert mirror.names() == []
    owner.put("v", "text now", 2)
    deliver(mirror, owner.packet(full=False), set())
    assert mirror.get("v") == "text now"


def test_a_full_packet_tells_of_nothing_that_was_known() -> None:
    owner, mirror = Model(), _core.VariableTable()
    owner.put("v", math.nan, 1)
    assert len(mirror.apply(owner.packet(full=True))[0]) == 1
    assert len(mirror.apply(owner.packet(full=True))[0]) == 0, "NaN is NaN"
    owner.put("v", math.nan, 2)
    indices, how, _ = mirror.apply(owner.packet(full=False))
    assert (indices.tolist(), how.tolist()) == ([0], [_core.HOW_TIME])


def test_many_at_once_by_index() -> None:
    owner, mirror = Model(), _core.VariableTable()
    indices = np.array([owner.table.add(f"v{n}", 0.0) for n in range(5000)], dtype=np.uint32)
    owner.table.add("text", "x")
    deliver(mirror, owner.packet(full=True, limit=1350), set())
    numbers = np.arange(5000, dtype=np.float64)
    owner.table.set_at(indices, numbers, 77)
    deliver(mirror, owner.packet(full=False, limit=1350), set())
    assert np.array_equal(mirror.numbers(indices), numbers)
    assert set(mirror.times(indices).tolist()) == {77}
    assert owner.table.strangers(np.array([5000, 9999], dtype=np.uint32)) == 2
    assert mirror.counters()["values"] == 5001 + 5000


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("a/*", "a/b", True), ("a/*", "a/b/c", False), ("a/**", "a/b/c", True), ("**", "x", True), ("*", "a/b", False),
        ("cyl*/t", "cyl12/t", True), ("cyl*/t", "cyl/x/t", False), ("**/t", "a/b/t", True), ("a", "a", True),
        ("a", "ab", False), ("*b*", "abc", True), ("", "a", False),
    ],
)  # fmt: skip
def test_wildcards(pattern: str, name: str, fits: bool) -> None:
    assert _core.variable_matches(pattern, name) == fits


def test_times_are_translated_once_by_the_event_time_of_their_message() -> None:
    owner, mirror = Model(), _core.VariableTable()
    owner.put("engine/rpm0", 1.0, 5_000)
    owner.put("brake/t1", 2.0, 9_000)
    chunks = owner.packet(full=True)
    assert owner.table.newest_ns == 9_000
    ahead = 3_600 * 10**9
    mirror.apply(chunks, [9_000 + ahead] * len(chunks))
    agrees(mirror, {"engine/rpm0": (1.0, 5_000 + ahead), "brake/t1": (2.0, 9_000 + ahead)})
    # Of the next full packet the other clock is believed to be elsewhere; what did not change keeps its time.
    owner.put("brake/t1", 2.0, 10_000)
    again = owner.packet(full=True)
    indices, how, bad = mirror.apply(again, [10_000 + ahead + 7] * len(again))
    assert (bad, [mirror.name(index) for index in indices.tolist()]) == (0, ["brake/t1"])
    assert how.tolist() == [_core.HOW_TIME]
    agrees(mirror, {"engine/rpm0": (1.0, 5_000 + ahead), "brake/t1": (2.0, 10_000 + ahead + 7)})
    with pytest.raises(ValueError, match="as many event times"):
        mirror.apply(again, [1] * (len(again) + 1))


def test_a_packet_without_values_has_no_event_time() -> None:
    owner = Model()
    owner.put("brake/t1", 2.0, 9_000)
    owner.packet(full=True)
    owner.remove("brake/t1")
    assert owner.packet(full=False)
    assert owner.table.newest_ns is None
