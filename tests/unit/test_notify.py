"""Services against a subscriber that does what the test says."""

import queue
import threading

import pytest

from ringcast.errors import BusyError, ClosedError, TagDestroyed
from ringcast.notify import Callback, MessageQueue


class FakeThreads:
    """Which threads have taken a schedule and not given it back."""

    def __init__(self):
        self.reading = set()

    def take(self, sched):
        self.reading.add(threading.get_native_id())

    def release(self):
        self.reading.discard(threading.get_native_id())


class FakeRegistration:
    pattern = "a"
    failure = None

    def __init__(self, subscriber) -> None:
        self._subscriber = subscriber
        self.threads = FakeThreads()
        self.left = threading.Event()

    def interrupt(self, consumer, reason):
        self._subscriber.script.put(reason)

    def consumer_left(self, consumer):
        self.left.set()


class FakeSubscriber:
    """Receives what is put into its script; raises what is an exception."""

    def __init__(self) -> None:
        self.script: queue.Queue = queue.Queue()

    def recv(self, timeout=None):
        item = self.script.get(timeout=30)
        if isinstance(item, Exception):
            raise item
        return item

    def recv_many(self, n, timeout=None):
        if timeout == 0 and self.script.empty():
            raise TimeoutError
        out = [self.recv()]
        while len(out) < n and not self.script.empty():
            out.append(self.recv())
        return out


@pytest.fixture
def subscriber():
    return FakeSubscriber()


@pytest.fixture
def registration(subscriber):
    subscriber.registration = FakeRegistration(subscriber)
    return subscriber.registration


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level("CRITICAL", "ringcast")


def test_errors_between_messages_are_reported_and_passed(subscriber, registration):
    told, got = [], queue.Queue()
    service = Callback(subscriber, got.put, True, lambda exc, msg: told.append((type(exc), msg)))
    service.start()
    for item in (1, ValueError("undecodable"), BusyError(), 2):
        subscriber.script.put(item)
    assert [got.get(timeout=30) for _ in range(2)] == [1, 2]
    assert len(registration.threads.reading) == 1
    service.close()
    assert registration.threads.reading == set()  # another thread may have its number later
    assert told == [(ValueError, None), (BusyError, None)]
    assert (service.delivered, service.failed) == (2, 2)
    assert registration.left.is_set()


@pytest.mark.parametrize("end", [ClosedError("subscriber"), TagDestroyed("a")])
def test_the_end_of_a_subscriber_is_the_end_of_its_service(subscriber, registration, end):
    registration.failure = end if isinstance(end, TagDestroyed) else None
    service = Callback(subscriber, print, True, None)
    service.start()
    subscriber.script.put(end)
    assert registration.left.wait(30)
    service.close()
    assert not service.running
    assert service.failed == isinstance(end, TagDestroyed)


def test_the_newest_of_very_many_is_still_found(subscriber, registration):
    got = queue.Queue()
    for i in range(1000):
        subscriber.script.put(i)
    service = Callback(subscriber, got.put, False, None)
    service.start()
    assert got.get(timeout=30) == 999
    service.close()
    assert service.skipped == 999


def test_a_queue_that_is_closed_while_it_has_no_room(subscriber, registration):
    service = MessageQueue(subscriber, 1, True, None)
    service.start()
    for i in range(2):
        subscriber.script.put(i)
    service.close()
    assert not service.running
    assert service.get(timeout=30) == 0
