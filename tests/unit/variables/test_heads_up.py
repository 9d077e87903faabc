"""A heads-up goes before a packet: nothing of it reaches the application, and what it announces comes as ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import ringcast
from ringcast import _core
from ringcast.client.decoding import Undecoded
from ringcast.client.rings.subscribed import SubscribedRings
from ringcast.testing.waiting import PATIENCE_S
from ringcast.variables.owner import LEAD_NS, lead


@pytest.fixture
def plant(session: ringcast.Session) -> Iterator[Any]:
    """Nothing is sent by itself."""
    with session.variables("plant", period_s=0, frame_s=0, on_join=False) as made:
        made.add_many({"rpm": 800.0, "valve": 0.1})
        yield made


@pytest.fixture
def rings(session: ringcast.Session, plant: Any) -> Iterator[Any]:
    made = SubscribedRings(session.attachment, "plant", Undecoded(), tag=plant.tag)
    plant.owned().publisher.wait_for_subscribers(1, PATIENCE_S)
    yield made
    made.close()


def received(rings: Any, table: _core.VariableTable, looks_out: bool = True) -> list[Any]:
    return [part[1] for part in rings.recv_chunks(lambda _: table, 100, PATIENCE_S, looks_out)]


@pytest.mark.parametrize("looks_out", [True, False])
def test_what_it_announces_comes_after_it(plant: Any, rings: Any, looks_out: bool) -> None:
    table = _core.VariableTable()
    for turn in range(3):
        plant.owned().heads_up()
        (told,) = received(rings, table, looks_out)
        assert told.heads_up
        assert len(told) == 0
        plant["rpm"] = 900.0 + turn
        plant.flush()
        (told,) = received(rings, table, looks_out)
        assert not told.heads_up
        assert table.get("rpm") == 900.0 + turn
    assert table.counters()["malformed"] == 0


def test_a_word_that_is_not_kept_costs_nothing_but_the_wait(plant: Any, rings: Any) -> None:
    table = _core.VariableTable()
    plant.owned().heads_up()
    received(rings, table)
    with pytest.raises(TimeoutError):
        rings.recv_chunks(lambda _: table, 100, 0.01, True)
    plant.flush()
    received(rings, table)
    assert table.get("valve") == 0.1


def test_nobody_who_follows_is_told_of_it(session: ringcast.Session, plant: Any) -> None:
    seen: list[list[str]] = []
    with plant.subscribe() as following:
        following.on_change(lambda changes: seen.append(changes.names))
        arrivals = following.queue()
        plant.owned().publisher.wait_for_subscribers(1, PATIENCE_S)
        plant.owned().heads_up()
        plant.flush(full=True)
        assert sorted(arrivals.get(PATIENCE_S).names) == ["rpm", "valve"]
        assert following.wait_newer(0, PATIENCE_S) == 1
        plant.owned().heads_up()
        plant["rpm"] = 900.0
        plant.flush()
        assert arrivals.get(PATIENCE_S).names == ["rpm"]
        assert following.wait_newer(1, PATIENCE_S) == 2
        assert following.counters()["packets"] == 2
    assert seen == [["rpm", "valve"], ["rpm"]]


def test_none_is_sent_where_nobody_follows(plant: Any) -> None:
    before = plant.owned().publisher.next_seq
    plant.owned().heads_up()
    assert plant.owned().publisher.next_seq == before


def test_ticks_lie_on_a_grid_and_send_heads_ups(plant: Any, rings: Any) -> None:
    owner, period_s = plant.owned(), 0.02
    sent, moments = owner.publisher.next_seq, []
    deadline = time.monotonic() + PATIENCE_S
    for due_ns in plant.ticks(period_s):
        moments.append(due_ns)
        # A tick that is late has none.
        if owner.publisher.next_seq > sent or time.monotonic() > deadline:
            break
    assert owner.publisher.next_seq > sent
    assert time.monotonic_ns() >= moments[-1]
    assert {later - earlier for earlier, later in pairwise(moments)} <= {20_000_000}


def test_ticks_without_heads_ups_send_what_is_flushed_alone(plant: Any, rings: Any) -> None:
    sent = plant.owned().publisher.next_seq
    for number, _ in zip(range(5), plant.ticks(0.005, heads_up=False), strict=False):
        plant["rpm"] = float(number)
        plant.flush()
    assert plant.owned().publisher.next_seq == sent + 5


def test_ticks_end_with_the_variables(plant: Any) -> None:
    ticks = plant.ticks(0.001)
    next(ticks)
    plant.close()
    assert list(ticks) == []


def test_a_cycle_that_has_something_to_send_says_so(session: ringcast.Session) -> None:
    with session.variables("bench", period_s=0.02, frame_s=0, on_join=False, heads_up=True) as bench:
        bench.add("rpm", 800.0)
        rings = SubscribedRings(session.attachment, "bench", Undecoded(), tag=bench.tag)
        bench.owned().publisher.wait_for_subscribers(1, PATIENCE_S)
        table = _core.VariableTable()
        told: list[Any] = []
        deadline = time.monotonic() + PATIENCE_S
        # A change between the heads-up's moment and its cycle has none.
        while not any(one.heads_up for one in told) and time.monotonic() < deadline:
            bench["rpm"] = time.monotonic()
            told += received(rings, table)
        rings.close()
    assert any(one.heads_up for one in told)


def test_bad_ticks_are_refused(session: ringcast.Session, plant: Any) -> None:
    for wrong in (0, -1, True, "0.01", 1e9):
        with pytest.raises(ValueError, match="period_s"):
            plant.ticks(wrong)
    with session.variables("cycling", period_s=0.05) as cycling:
        cycling.add("rpm", 1.0)
        with pytest.raises(ValueError, match="open them with period_s=0"):
            cycling.ticks(0.01)


def test_the_lead_is_a_small_part_of_the_period() -> None:
    assert lead(500_000) == 0, "nothing grows cold that soon"
    assert lead(5_000_000) == 200_000
    assert lead(50_000_000) == LEAD_NS


def test_a_heads_up_with_values_or_of_everything_is_no_chunk(plant: Any, rings: Any) -> None:
    good = _core.VariableTable()
    good.add("rpm", 1.0)
    (chunk,) = good.collect(full=True, period_ns=0, frame_ms=0, limit=1350)
    for flags in (2, 3, 255):
        table = _core.VariableTable()
        assert table.apply([chunk[:3] + bytes([flags]) + chunk[4:]])[2] == 1
        assert len(table) == 0
