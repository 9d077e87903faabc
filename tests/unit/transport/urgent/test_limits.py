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
    taken = [limits.take(read("deadline:1ms/10ms")) for _ in range(3)]
    assert "0.00 are left" in limits.refusal(read("deadline:1ms/100ms"))
    limits.give_back(taken.pop())
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
    other.schedule(8)
    assert given == [7, 8]
    assert other.in_force(None, threading.get_native_id(), own=True).refused == ""
