"""A program is told that its daemon went away and that it is back."""

import queue
import threading

import pytest

import ringcast
from ringcast import ConnectionChange
from ringcast.testing.waiting import PATIENCE_S


def test_lost_and_back_are_told_in_this_order(daemon, session):
    told: queue.Queue[ConnectionChange] = queue.Queue()
    with session.on_connection_change(told.put) as service:
        assert told.get(timeout=PATIENCE_S) == ConnectionChange("connected")
        pub, sub = session.publisher("a"), session.subscribe("a")
        for number in range(2):
            daemon.kill()
            lost = told.get(timeout=PATIENCE_S)
            assert lost.state == "lost"
            assert lost.reason
            daemon.start()
            assert told.get(timeout=PATIENCE_S) == ConnectionChange("back")
            assert session.connected
            pub.send(b"%d" % number)
            assert sub.recv(timeout=PATIENCE_S).data == b"%d" % number
    assert told.empty()
    assert (service.failed, service.skipped) == (0, 0)
    assert not service.running


def test_a_callback_given_while_the_daemon_is_away_hears_so_first(daemon, session, eventually):
    daemon.kill()
    eventually(lambda: not session.connected)
    told: queue.Queue[ConnectionChange] = queue.Queue()
    session.on_connection_change(told.put)
    assert told.get(timeout=PATIENCE_S).state == "lost"
    daemon.start()
    assert told.get(timeout=PATIENCE_S).state == "back"


def test_a_callback_that_blocks_or_fails_keeps_nothing_waiting(daemon, session, eventually):
    go_on, errors = threading.Event(), queue.Queue()

    def slow(change):
        go_on.wait(PATIENCE_S)
        raise ValueError(change.state)

    session.on_connection_change(slow, on_error=lambda error, change: errors.put((str(error), change.state)))
    daemon.kill()
    eventually(lambda: not session.connected)
    daemon.start()
    eventually(lambda: session.connected)
    assert session.nodes()  # while the callback still waits
    go_on.set()
    assert [errors.get(timeout=PATIENCE_S) for _ in range(3)] == [(s, s) for s in ("connected", "lost", "back")]


def test_closing_a_session_is_not_losing_it(connect):
    told: queue.Queue[ConnectionChange] = queue.Queue()
    session = connect()
    service = session.on_connection_change(told.put)
    assert told.get(timeout=PATIENCE_S).state == "connected"
    session.close()
    assert told.empty()
    assert not service.running
    with pytest.raises(ringcast.ClosedError):
        session.on_connection_change(told.put)
