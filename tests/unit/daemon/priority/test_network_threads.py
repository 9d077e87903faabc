from ringcast.daemon.priority.network_threads import Task, network_tasks, preempted, warning
from ringcast.model.schedule import read

TABLE = [
    Task(1, "init"), Task(14, "ksoftirqd/0"), Task(15, "migration/0", "fifo", 99), Task(30, "irq/30-eth0", "fifo", 50),
    Task(31, "irq/31-ahci", "fifo", 50), Task(40, "napi/eth0-8193", "fifo", 45), Task(77, "kworker/0:1"),
]  # fmt: skip


def test_only_the_cards_threads_count():
    assert [task.pid for task in network_tasks(TABLE)] == [14, 30, 40]


def test_a_priority_below_the_cards_is_fine():
    assert warning(read("fifo:30"), TABLE, "a") == ""
    assert warning(read("other"), TABLE, "a") == ""
    assert preempted(read("fifo:99"), TABLE[:3]) == []  # without threaded interrupts there is nothing to hold up


def test_one_that_is_not_below_is_warned_of():
    assert [task.pid for task in preempted(read("rr:45"), TABLE)] == [40]
    said = warning(read("fifo:60"), TABLE, "a")
    assert "irq/30-eth0" in said
    assert "napi/eth0-8193" in said
    assert "below 45" in said
    assert "'a'" in said


def test_a_reservation_runs_before_all_of_them():
    assert len(preempted(read("deadline:1ms/10ms"), TABLE)) == 2
    assert "runtime" in warning(read("deadline:1ms/10ms"), TABLE, "a")
