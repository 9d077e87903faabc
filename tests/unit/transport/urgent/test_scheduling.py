import ctypes
import errno
import os
import subprocess
import sys
import threading

import pytest

from ringcast import _core
from ringcast.errors import QosMismatch
from ringcast.model.schedule import read
from ringcast.transport.urgent import scheduling
from ringcast.transport.urgent.urgency import Urgency

_PR_CAPBSET_DROP, _CAP_SYS_NICE = 24, 23


def granted(text):
    try:
        scheduling.check(text, "here")
    except QosMismatch:
        return False
    return True


def without_privilege(program):
    """The program's output, run without the right to set schedules."""

    def drop():
        import resource

        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_NICE, 0, 0, 0)

    done = subprocess.run([sys.executable, "-c", program], preexec_fn=drop, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def sleeper():
    """The kernel's number of a thread that sleeps until the test ends."""
    started, stop = threading.Event(), threading.Event()
    found = []

    def run():
        found.append(threading.get_native_id())
        started.set()
        stop.wait()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    yield found[0]
    stop.set()
    thread.join()


@pytest.mark.parametrize("text", ["fifo:30", "rr:5", "deadline:1ms/100ms", "deadline:1ms/50ms/100ms"])
def test_what_the_kernel_has_is_read_back(text, sleeper, eventually):
    if not granted(text):  # what is said then: test_without_privilege_the_reason_and_the_way_out_are_said
        return
    eventually(lambda: scheduling.give(sleeper, read(text)) == "")
    assert scheduling.of(sleeper) == text
    assert scheduling.give(sleeper, read("other")) == ""
    assert scheduling.of(sleeper) == "other"


def test_a_thread_that_has_ended_has_no_schedule(eventually):
    found = []
    thread = threading.Thread(target=lambda: found.append(threading.get_native_id()))
    thread.start()
    thread.join()
    eventually(lambda: scheduling.of(found[0]) == "")  # the kernel may take a moment to forget it


@pytest.mark.parametrize("after", ["other", "fifo:3"])
def test_a_sleeping_thread_gives_back_all_that_it_had_reserved(after, sleeper, eventually):
    reservation = "deadline:2ms/100ms"
    if not granted(reservation):
        return
    for _ in range(60 * os.cpu_count()):  # more than there is, if nothing came back
        # Other programs of the machine may have all of it, for a while; what nobody gave back stays taken.
        eventually(lambda: scheduling.give(sleeper, read(reservation)) == "")
        assert scheduling.give(sleeper, read(after)) == ""


def test_a_reservation_that_is_refused_leaves_the_one_before(sleeper, eventually):
    if not granted("deadline:1ms/100ms"):
        return
    eventually(lambda: scheduling.give(sleeper, read("deadline:1ms/100ms")) == "")
    more_than_its_period = read("deadline:1ms/100ms")._replace(runtime_ns=200_000_000)
    assert "refuses" in scheduling.give(sleeper, more_than_its_period)
    assert scheduling.of(sleeper) == "deadline:1ms/100ms"


def test_no_thread_is_not_the_callers_own():
    assert scheduling.give(0, read("fifo:3"))
    assert scheduling.of(os.getpid()) == "other"


def test_without_privilege_the_reason_and_the_way_out_are_said():
    said = without_privilege(
        "from ringcast.transport.urgent import scheduling\n"
        "from ringcast.errors import QosMismatch\n"
        "try: scheduling.check('fifo:30', 'edge')\n"
        "except QosMismatch as exc: print(exc)\n"
    )
    assert "fifo:30" in said
    assert "'edge'" in said
    assert "CAP_SYS_NICE" in said


def test_a_share_that_does_not_fit_is_no_question_of_privilege(monkeypatch):
    def full(values):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(_core, "try_schedule", full)
    with pytest.raises(QosMismatch, match="90% of a core does not fit"):
        scheduling.check("deadline:9ms/10ms", "here")


def test_what_is_refused_is_shown_and_nothing_else_happens(monkeypatch):
    def refuse(thread, values):
        raise OSError(errno.EPERM, "no")

    monkeypatch.setattr(_core, "set_schedule", refuse)
    urgency = Urgency("high fifo:30")
    urgency.schedule(threading.get_native_id())
    has = urgency.in_force(None, threading.get_native_id(), own=True)
    assert has.sched == "other"
    assert "fifo" in has.refused


def test_a_helper_takes_no_second_reservation(monkeypatch):
    given = []
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: given.append(values))
    Urgency("deadline:1ms/10ms").schedule(1, helper=True)
    Urgency("high").schedule(1)
    assert given == []
    Urgency("fifo:9").schedule(1, helper=True)
    assert given == [(1, 9, 0, 0, 0)]
