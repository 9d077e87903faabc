"""Threads that read a subscription have the schedule of its channels."""

import threading

import pytest

from ringcast import _core
from ringcast.client.rings.urgent_threads import UrgentThreads


@pytest.fixture
def kernel(monkeypatch):
    """{thread: policy's number and priority}, as if everything were granted."""
    had = {}
    monkeypatch.setattr(_core, "set_schedule", lambda thread, values: had.__setitem__(thread, values))
    monkeypatch.setattr(_core, "schedule_of", lambda thread: had.get(thread, (0, 0, 0, 0, 0)))
    return had


def mine(kernel):
    return kernel.get(threading.get_native_id(), (0, 0, 0, 0, 0))[:2]


def test_it_follows_the_most_urgent_channel(kernel):
    threads = UrgentThreads()
    assert threads.take() == "other"
    assert kernel == {}  # a thread of usual channels is left alone
    threads.channel(1, "high fifo:30")
    assert mine(kernel) == (1, 29)  # below the thread that delivers
    threads.channel(2, "rr:40")
    assert mine(kernel) == (2, 39)
    threads.channel(2, "")
    assert mine(kernel) == (1, 29)
    threads.channel(1, "high")
    assert mine(kernel) == (0, 0)


def test_what_the_subscription_asks_for_counts_too(kernel):
    threads = UrgentThreads("fifo:9")
    assert threads.take() == "fifo:8"
    threads.asked("")
    assert mine(kernel) == (0, 0)


def test_a_schedule_of_its_own_stays(kernel):
    threads = UrgentThreads("fifo:9")
    assert threads.take("fifo:3") == "fifo:3"
    threads.channel(1, "fifo:50")
    assert mine(kernel) == (1, 3)
    threads.release()
    assert mine(kernel) == (0, 0)
    with pytest.raises(ValueError, match="1 to 99"):
        threads.take("fifo:0")


def test_a_publisher_that_left_counts_no_more(kernel):
    threads = UrgentThreads()
    threads.take()
    threads.channel(1, "fifo:30")
    threads.channel(2, "fifo:10")
    threads.gone(1)
    assert mine(kernel) == (1, 9)
    threads.channel(2, "")
    assert mine(kernel) == (0, 0)
    threads.gone(3)


def test_a_closed_subscription_gives_its_threads_back(kernel):
    threads = UrgentThreads("fifo:9")
    done, taken = threading.Event(), threading.Event()

    def read():
        threads.take()
        taken.set()
        done.wait()

    reader = threading.Thread(target=read)
    reader.start()
    taken.wait()
    assert kernel[reader.native_id][:2] == (1, 8)
    threads.close()
    assert kernel[reader.native_id][:2] == (0, 0)
    done.set()
    reader.join()


def test_what_another_subscription_gave_a_thread_stays(kernel):
    one, other = UrgentThreads("fifo:9"), UrgentThreads("fifo:20")
    one.take()
    other.take()
    one.close()
    assert mine(kernel) == (1, 19)


def test_a_refusal_leaves_the_thread_as_it_is(monkeypatch, caplog):
    def refuse(thread, values):
        raise OSError(1, "no")

    monkeypatch.setattr(_core, "set_schedule", refuse)
    assert UrgentThreads("fifo:9").take() == "other"
    assert "fifo:8" in caplog.text
