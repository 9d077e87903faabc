import logging

import pytest

from ringcast import _core
from ringcast.client.rings.urgent_threads import UrgentThreads
from ringcast.model.schedule import read
from ringcast.transport.urgent import caution, urgency
from ringcast.transport.urgent.caution import Caution
from ringcast.transport.urgent.network_threads import Task, network_tasks, preempted, warning
from ringcast.transport.urgent.urgency import Urgency

TABLE = [
    Task(1, "init"), Task(14, "ksoftirqd/0"), Task(15, "migration/0", "fifo", 99), Task(30, "irq/30-eth0", "fifo", 50),
    Task(31, "irq/31-ahci", "fifo", 50), Task(40, "napi/eth0-8193", "fifo", 45), Task(77, "kworker/0:1"),
]  # fmt: skip


def test_only_the_cards_threads_count():
    assert [task.pid for task in network_tasks(TABLE)] == [14, 30, 40]


def test_a_priority_below_the_cards_is_fine():
    assert warning(read("fifo:30"), TABLE, "node 'a'") == ""
    assert warning(read("other"), TABLE, "node 'a'") == ""
    assert preempted(read("fifo:99"), TABLE[:3]) == []  # without threaded interrupts there is nothing to hold up


def test_one_that_is_not_below_is_warned_of():
    assert [task.pid for task in preempted(read("rr:45"), TABLE)] == [40]
    said = warning(read("fifo:60"), TABLE, "node 'a'")
    assert "irq/30-eth0" in said
    assert "napi/eth0-8193" in said
    assert "below 45" in said
    assert "'a'" in said


def test_a_reservation_runs_before_all_of_them():
    assert len(preempted(read("deadline:1ms/10ms"), TABLE)) == 2
    assert "runtime" in warning(read("deadline:1ms/10ms"), TABLE, "node 'a'")


@pytest.mark.parametrize("name", ["irq/130-iwlwifi", "irq/41-ath10k_pci", "irq/12-rtw88_pci", "irq/9-mlx5_comp0"])
def test_cards_are_known_by_their_drivers_too(name):
    assert network_tasks([Task(1, name)]) == [Task(1, name)]


def test_and_by_the_numbers_of_their_interrupts():
    assert network_tasks(TABLE, {31}) == network_tasks([*TABLE[:4], *TABLE[4:]], {31})
    assert [task.pid for task in network_tasks(TABLE, {31})] == [14, 30, 31, 40]


@pytest.fixture
def table(monkeypatch):
    """A machine whose card has a thread of its own; what was read of it."""
    read_at, now = [], [0.0]

    def tasks():
        read_at.append(now[0])
        return TABLE

    made = Caution(tasks, lambda: set(), lambda: now[0])
    monkeypatch.setattr(caution, "CAUTION", made)
    monkeypatch.setattr(urgency, "CAUTION", made)
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: None)
    return made, read_at, now


def test_each_schedule_is_logged_once(table, caplog):
    made, read_at, now = table
    with caplog.at_level(logging.WARNING):
        assert "below 45" in made.log(read("fifo:60"))
        assert "below 45" in made.log(read("fifo:60"))
        assert made.log(read("fifo:10")) == ""
    assert caplog.text.count("fifo:60 on this node runs before") == 1
    assert read_at == [0.0]
    now[0] = 100.0
    made.about(read("fifo:60"))
    made.about(read("other"))
    assert read_at == [0.0, 100.0]


def test_a_channel_that_a_subscriber_or_a_tag_made_urgent_is_warned_of(table, caplog):
    for text, said in (("high fifo:60", "below 45"), ("high fifo:10", ""), ("high", "")):
        channel = Urgency(text)
        channel.schedule(7)
        assert said in channel.in_force(None, 0, own=True).warning
        assert bool(channel.in_force(None, 0, own=True).warning) == bool(said)
        channel.close()
    assert "fifo:60" in caplog.text


def test_an_applications_own_thread_is_warned_of(table, caplog):
    threads = UrgentThreads()
    threads.take("fifo:70")
    assert "fifo:70 on this node runs before" in caplog.text
    threads.close()
