"""Callback, event, queue, blackboard (LabMap, section III.C): each on its own thread, none in another's way."""

import logging
import threading

import pytest

import ringcast


@pytest.fixture
def daemon(shared_daemon):
    return shared_daemon


class Gate:
    """A callback that stays inside until it is let go, and says what it was called with."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.got = []

    def __call__(self, msg):
        self.got.append(msg.data)
        self.entered.release()
        assert self.let_go.acquire(timeout=30)


@pytest.fixture
def tag(session):
    return session.tag("news", codec="json")


@pytest.fixture
def pub(tag):
    return tag.publisher()


def test_a_blocking_callback_gets_every_message_one_after_the_other(tag, pub):
    gate = Gate()
    service = tag.subscribe().on_message(gate)
    for i in range(10):
        pub.send(i)
    for _ in range(10):
        assert gate.entered.acquire(timeout=30)
        gate.let_go.release()
    service.close()
    assert gate.got == list(range(10))
    assert (service.delivered, service.skipped, service.failed, service.running) == (10, 0, 0, False)


def test_a_non_blocking_callback_gets_the_newest_and_the_rest_is_counted(tag, pub):
    gate = Gate()
    service = tag.subscribe().on_message(gate, blocking=False)
    pub.send(0)
    assert gate.entered.acquire(timeout=30)
    for i in range(1, 1001):
        pub.send(i)
    gate.let_go.release()
    assert gate.entered.acquire(timeout=30)
    assert gate.got == [0, 1000]
    assert service.skipped == 999
    gate.let_go.release()


def test_one_slow_callback_delays_nobody(tag, pub):
    gate = Gate()
    tag.subscribe().on_message(gate)
    quick = tag.subscribe().queue()
    board, sub = tag.subscribe().blackboard(), tag.subscribe()
    pub.send(0)
    assert gate.entered.acquire(timeout=30)
    for i in range(1, 100):
        pub.send(i)
    assert [quick.get(timeout=30).data for _ in range(100)] == list(range(100))
    assert board.latest.data == 99
    assert [msg.data for msg in sub.recv_many(200)] == list(range(100))
    assert gate.got == [0]
    gate.let_go.release(100)


def test_an_exception_is_reported_and_the_thread_goes_on(tag, pub, caplog):
    told, done = [], threading.Event()

    def callback(msg):
        if msg.data == "bad":
            raise RuntimeError("cannot digest it")
        done.set()

    service = tag.subscribe().on_message(callback, on_error=lambda exc, msg: told.append((str(exc), msg.data)))
    with caplog.at_level(logging.CRITICAL, logger="ringcast"):
        pub.send("bad")
        pub.send("good")
        assert done.wait(30)
    service.close()
    assert told == [("cannot digest it", "bad")]
    assert (service.delivered, service.failed) == (1, 1)


def test_an_error_handler_that_fails_is_survived(tag, pub, caplog):
    done = threading.Event()

    def callback(msg):
        if msg.data == "bad":
            raise RuntimeError
        done.set()

    tag.subscribe().on_message(callback, on_error=lambda exc, msg: 1 / 0)
    with caplog.at_level(logging.CRITICAL + 1, logger="ringcast"):
        pub.send("bad")
        pub.send("good")
        assert done.wait(30)


def test_a_callback_may_close_its_own_service_subscriber_and_session(connect):
    session = connect()
    pub = connect().publisher("news")
    done = threading.Event()
    sub = session.subscribe("news")

    def callback(_):
        service.close()
        sub.close()
        session.close()
        done.set()

    service = sub.on_message(callback)
    pub.send(b"")
    assert done.wait(30)
    assert session.closed


def test_a_service_closed_leaves_its_subscriber_to_others(tag, pub):
    sub = tag.subscribe()
    with sub.queue() as queue:
        pub.send(1)
        assert queue.get(timeout=30).data == 1
    pub.send(2)
    assert sub.recv(timeout=30).data == 2
    with pytest.raises(TimeoutError):
        sub.recv(timeout=0)
    with sub.queue() as queue:
        pub.send(3)
        assert queue.get(timeout=30).data == 3
    with pytest.raises(ringcast.ClosedError):
        queue.get(timeout=30)


def test_a_subscriber_has_one_consumer(tag):
    sub = tag.subscribe()
    sub.on_message(print)
    with pytest.raises(ringcast.BusyError):
        sub.on_message(print)
    with pytest.raises(ringcast.BusyError):
        sub.queue()
    with pytest.raises(ValueError, match="reliable"):
        tag.subscribe(reliable=True).on_message(print, blocking=False)


def test_a_blocking_queue_leaves_in_the_ring_what_it_has_no_room_for(tag, pub):
    queue = tag.subscribe().queue(maxsize=3)
    for i in range(50):
        pub.send(i)
    assert [queue.get(timeout=30).data for _ in range(50)] == list(range(50))
    with pytest.raises(TimeoutError):
        queue.get(timeout=0)
    with pytest.raises(ringcast.WouldBlock):
        queue.get_nowait()
    assert queue.skipped == 0


def test_a_non_blocking_queue_keeps_the_newest_and_counts_the_rest(tag, pub, eventually):
    queue = tag.subscribe().queue(maxsize=3, blocking=False)
    for i in range(50):
        pub.send(i)
    eventually(lambda: queue.delivered == 50)
    assert [queue.get_nowait().data for _ in range(3)] == [47, 48, 49]
    assert (queue.skipped, len(queue)) == (47, 0)
    with pytest.raises(ValueError, match="maxsize"):
        tag.subscribe().queue(maxsize=0)


def test_a_queue_ends_with_what_ended_its_subscriber(tag, pub, connect, caplog):
    other = connect()
    queue = other.subscribe("news").queue()
    pub.send("last")
    with caplog.at_level(logging.CRITICAL, logger="ringcast"):
        tag.destroy(force=True)
        assert queue.get(timeout=30).data == "last"
        with pytest.raises(ringcast.TagDestroyed):
            queue.get(timeout=30)


def test_an_event_is_set_by_arrivals_and_consumes_nothing(tag, pub):
    sub = tag.subscribe()
    event = sub.event()
    assert not event.is_set()
    assert event.wait(0) is False
    for i in range(3):
        pub.send(i)
        assert event.wait(30)
        event.clear()
        assert sub.recv_nowait().data == i
    assert pub.subscribers == 1
    pub.send("more")
    assert event.wait(30)
    event.close()
    assert sub.recv(timeout=30).data == "more"


def test_an_event_made_late_tells_of_what_is_there(tag, pub):
    sub = tag.subscribe()
    pub.send(1)
    assert sub.event().wait(30)


def test_closing_the_subscriber_releases_whoever_waits_for_the_event(tag):
    sub = tag.subscribe()
    event = sub.event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    sub.close()
    thread.join()
    assert not event.running


def test_many_threads_watch_one_blackboard(tag, pub):
    sub = tag.subscribe()
    board = sub.blackboard()
    assert board.latest is None
    ready, seen = threading.Barrier(6), []

    def watch():
        ready.wait()
        msg = None
        while msg is None or msg.data < 10:
            msg = board.wait_newer(msg, timeout=30)
        seen.append(msg.data)

    threads = [threading.Thread(target=watch) for _ in range(5)]
    for thread in threads:
        thread.start()
    ready.wait()
    for i in range(11):
        pub.send(i)
        assert board.latest.data == i
    for thread in threads:
        thread.join()
    assert seen == [10] * 5
    with pytest.raises(TimeoutError):
        board.wait_newer(board.latest, timeout=0)
    assert sub.recv(timeout=30).data == 0
    assert sub.latest.data == 10
