import threading

import pytest

from ringcast import _core
from ringcast.errors import QosMismatch
from ringcast.model.schedule import read
from ringcast.transport.urgent import scheduling, urgency
from ringcast.transport.urgent.limits import Limits
from ringcast.transport.urgent.urgency import Urgency


def test_priorities_up_to_the_limit():
    limits = Limits(priority=20)
    assert limits.refusal(read("fifo:20")) == ""
    assert "at most rr:20" in limits.refusal(read("rr:21"))
    assert "no fifo" in Limits(priority=0).refusal(read("fifo:1"))
    assert limits.refusal(read("other")) == limits.refusal(read("deadline:1ms/1ms")) == ""


def test_reservations_up_to_the_limit_all_together():
    limits = Limits(cores=0.3)
    assert [limits.take(read("deadline:1ms/10ms")) for _ in range(3)] == ["", "", ""]
    assert "0.00 are left" in limits.refusal(read("deadline:1ms/100ms"))
    assert "0.00 are left" in limits.take(read("deadline:1ms/100ms"))
    limits.give_back(read("deadline:1ms/10ms"))
    assert limits.refusal(read("deadline:1ms/10ms")) == ""


def test_a_node_asked_for_more_than_its_limit_refuses_and_names_it(monkeypatch):
    monkeypatch.setattr(scheduling, "LIMITS", Limits(priority=5))
    with pytest.raises(QosMismatch, match=r"node 'edge'.*limits\.sched_priority.*ringcast\.toml"):
        scheduling.check("fifo:6", "edge")


def test_a_channel_above_the_limit_works_without_its_schedule(monkeypatch):
    monkeypatch.setattr(urgency, "LIMITS", Limits(cores=0.15))
    given = []
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: given.append(thread))
    one, other = Urgency("deadline:1ms/10ms"), Urgency("deadline:1ms/10ms")
    one.schedule(7)
    other.schedule(8)
    assert given == [7]
    assert "limits.sched_share" in other.in_force(None, threading.get_native_id(), own=True).refused
    one.close()
    assert given == [7, 7]  # what its thread had is given up before it ends
    other.schedule(8)
    assert given == [7, 7, 8]
    assert other.in_force(None, threading.get_native_id(), own=True).refused == ""


def test_what_a_channel_has_is_not_counted_against_the_one_that_takes_its_place():
    limits = Limits(cores=0.3)
    limits.take(read("deadline:2ms/10ms"), 5)
    assert "0.10 are left" in limits.refusal(read("deadline:2ms/10ms"))
    assert "0.10 are left" in limits.refusal(read("deadline:2ms/10ms"), {6})
    assert limits.refusal(read("deadline:2ms/10ms"), {5}) == ""
    assert "0.30 are left" in limits.refusal(read("deadline:4ms/10ms"), {5})
    assert limits.share_of({5, 6}) == 0.2
    assert limits.share_of({6}) == 0.0


def in_force(one):
    return one.in_force(None, threading.get_native_id(), own=True)


def test_a_channel_that_takes_the_place_of_another_has_its_reservation_once_that_goes(monkeypatch):
    monkeypatch.setattr(urgency, "LIMITS", Limits(cores=0.15))
    given = []
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: given.append((thread, values[0])))
    before, after = Urgency("deadline:1ms/10ms", 5), Urgency("critical deadline:1ms/10ms", 5)
    stranger = Urgency("deadline:1ms/10ms", 6)
    before.schedule(7)
    stranger.schedule(9)
    after.schedule(8)
    assert "limits.sched_share" in in_force(after).lost
    assert in_force(stranger).lost == ""
    before.retire()
    assert given == [(7, 6), (7, 0), (8, 6)]
    assert in_force(after).refused == in_force(after).lost == ""
    assert "limits.sched_share" in in_force(stranger).refused
    before.close()
    after.close()
    assert urgency.LIMITS.refusal(read("deadline:1ms/10ms")) == ""


def test_a_channel_that_ended_while_it_waited_gets_nothing(monkeypatch):
    monkeypatch.setattr(urgency, "LIMITS", Limits(cores=0.15))
    given = []
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: given.append(thread))
    before, after = Urgency("deadline:1ms/10ms", 5), Urgency("deadline:1ms/10ms", 5)
    before.schedule(7)
    after.schedule(8)
    after.close()
    before.close()
    assert given == [7, 7]


def test_a_kernel_without_room_for_both_is_asked_for_what_is_more(monkeypatch):
    limits, tried = Limits(), []
    monkeypatch.setattr(scheduling, "LIMITS", limits)
    monkeypatch.setattr(_core, "try_schedule", lambda values: tried.append(values[2]))
    limits.take(read("deadline:2ms/10ms"), 5)
    scheduling.check("deadline:5ms/10ms", "here", {5})
    scheduling.check("deadline:5ms/10ms", "here", {6})
    scheduling.check("deadline:1ms/10ms", "here", {5})
    assert tried == [3_000_000, 5_000_000, 1_024]
