"""A daemon that is lost, found again, left, does not read, or is another user's."""

from __future__ import annotations

import os

import pytest
from control_peer import Call, opened

from ringcast.client import connection as module
from ringcast.client.connection import Connection
from ringcast.client.outbox import Outbox
from ringcast.control import link
from ringcast.control.answers import Done, TagOpened
from ringcast.control.notices import SubscriberCount, TagGone
from ringcast.control.requests import Bye, GetStatus, Hello, OpenTag, Unsubscribe
from ringcast.errors import ClosedError, DaemonUnavailable, ForeignDaemon, ForkedError
from ringcast.testing.waiting import PATIENCE_S


@pytest.mark.parametrize("last_words", [None, b"\xc1 garbage"])
def test_a_lost_daemon_is_found_again(world, last_words):
    connection, peer = world.connect()
    call = Call(lambda: connection.call(GetStatus(id=0), Done))
    peer.hear(GetStatus)
    world.owner.on_restore = lambda: connection.call(OpenTag(id=0, name="again"), TagOpened)
    if last_words:
        peer.sock.send(last_words)
    peer.sock.close()
    assert isinstance(call.result(), DaemonUnavailable)
    second = world.accept().welcome()
    restoring = second.hear(OpenTag).message
    with pytest.raises(DaemonUnavailable):  # only the restoring thread may call now
        connection.call(GetStatus(id=0), Done)
    second.say(opened(restoring.id))
    assert world.owner.restored.acquire(timeout=PATIENCE_S)
    call = Call(lambda: [connection.call(GetStatus(id=0), Done) for _ in range(1)])
    second.done(GetStatus)
    call.result()
    assert connection.connected


def test_a_daemon_lost_while_restoring_is_looked_for_again(world):
    connection, peer = world.connect()
    world.owner.on_restore = lambda: connection.call(OpenTag(id=0, name="again"), TagOpened)
    peer.sock.close()
    for _ in range(2):
        half = world.accept().welcome()
        half.hear(OpenTag)
        half.sock.close()
    whole = world.accept().welcome()
    whole.say(opened(whole.hear(OpenTag).message.id))
    assert world.owner.restored.acquire(timeout=PATIENCE_S)


def test_what_was_posted_to_a_lost_daemon_is_not_said_to_the_next(world, eventually):
    connection, peer = world.connect()
    world.listener.close()
    peer.sock.close()
    eventually(lambda: not connection.connected)
    connection.post(Unsubscribe(id=0, subscription=1))
    world.listen()
    second = world.accept().welcome()
    assert world.owner.restored.acquire(timeout=PATIENCE_S)
    connection.post(Unsubscribe(id=0, subscription=2))
    assert second.done(Unsubscribe).message.subscription == 2


def test_closing_says_goodbye_and_ends_everything(world):
    connection, peer = world.connect()
    call = Call(connection.close)
    peer.done(Bye)
    assert call.result() is None
    assert link.receive_request(peer.sock) is None
    connection.close()
    with pytest.raises(ClosedError):
        connection.call(GetStatus(id=0), Done)
    connection.post(Unsubscribe(id=0, subscription=1))


def test_closing_while_the_daemon_is_away_does_not_wait_for_it(world, monkeypatch):
    monkeypatch.setattr(module, "RETRY_FIRST_S", 3600)
    connection, peer = world.connect()
    peer.sock.close()
    assert Call(connection.close).result() is None


def test_closing_in_the_middle_of_a_reconnection(world):
    connection, peer = world.connect()
    peer.sock.close()
    half = world.accept()
    half.hear(Hello)
    assert Call(connection.close).result() is None


def test_a_forked_child_touches_nothing(world):
    connection, peer = world.connect()
    connection._lock.acquire()  # as if another thread had held it at the moment of the fork
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            connection.forked()
            try:
                connection.call(GetStatus(id=0), Done)
            except ForkedError:
                connection.post(Unsubscribe(id=0, subscription=1))
                connection.close()
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    connection._lock.release()
    call = Call(lambda: connection.call(GetStatus(id=0), Done))
    peer.done(GetStatus)
    assert isinstance(call.result(), Done)


def test_a_daemon_that_reads_nothing_until_all_is_said_is_not_waited_for(world):
    """Client and daemon would wait for each other if the thread that reads waited for room to answer."""
    count = 5000

    def answer(notice, received):
        connection.post(Unsubscribe(id=0, subscription=notice.count))

    connection, peer = world.connect()
    world.owner.noticed = answer
    for number in range(count):
        peer.say(SubscriberCount(publisher=1, count=number))
    assert [peer.done(Unsubscribe).message.subscription for _ in range(count)] == list(range(count))


def test_threads_whose_requests_find_no_room_hold_up_nobody(world):
    connection, peer = world.connect()
    name = "x" * 20_000
    calls = [Call(lambda: connection.call(OpenTag(id=0, name=name), TagOpened).name) for _ in range(64)]
    peer.say(TagGone(name="a"))
    assert world.owner.arrived.acquire(timeout=PATIENCE_S), "the thread reads though there is no room to send"
    for _ in calls:
        peer.say(opened(peer.hear(OpenTag).message.id))
    assert {call.result() for call in calls} == {"a"}


def test_a_daemon_that_never_reads_is_left(world, monkeypatch):
    monkeypatch.setattr(module, "Outbox", lambda: Outbox(max_packets=100))
    connection, _ = world.connect()
    name = "x" * 20_000
    for _ in range(1000):
        connection.post(OpenTag(id=0, name=name))
    world.accept().welcome()
    assert world.owner.restored.acquire(timeout=PATIENCE_S)


def test_another_users_daemon_is_not_talked_to(world, monkeypatch):
    monkeypatch.setattr(module, "uid_of_peer", lambda sock: os.geteuid() + 1)
    with pytest.raises(ForeignDaemon, match="not talked to") as caught:
        Connection(world.path, world.owner, program="test")
    assert (caught.value.uid, caught.value.own_uid) == (os.geteuid() + 1, os.geteuid())
    peer = world.accept()
    assert link.receive_request(peer.sock) is None, "it was told nothing"


def test_the_system_daemon_of_root_is(world, monkeypatch):
    monkeypatch.setattr(module, "uid_of_peer", lambda sock: 0)
    connection, _ = world.connect()
    assert connection.connected
