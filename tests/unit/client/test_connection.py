"""A connection and a daemon that answers: requests, answers, notices, descriptors, refusals."""

from __future__ import annotations

import os

import pytest
from control_peer import INFO, Call, Owner, opened

from ringcast.client import connection as module
from ringcast.client.connection import Connection
from ringcast.control.answers import Done, Refused, TagListing, TagOpened
from ringcast.control.notices import RingUp, SubscriberCount, TagGone
from ringcast.control.requests import GetStatus, Hello, ListTags, OpenTag, UseMailbox
from ringcast.errors import BadMessage, DaemonUnavailable, UnknownTag
from ringcast.model.tag import TagAttributes
from ringcast.testing.waiting import PATIENCE_S


def test_answers_find_their_requests_in_any_order(world):
    connection, peer = world.connect()
    calls = [Call(lambda name=name: connection.call(OpenTag(id=0, name=name), TagOpened).name) for name in "ab"]
    requests = [peer.hear(OpenTag).message for _ in calls]
    for request in reversed(requests):
        peer.say(opened(request.id, request.name))
    assert [call.result() for call in calls] == ["a", "b"]


def test_an_answer_in_several_packets_is_put_together(world):
    connection, peer = world.connect()
    call = Call(lambda: connection.call_pages(ListTags(id=0), TagListing))
    number = peer.hear(ListTags).message.id
    for more in (True, True, False):
        peer.say(TagListing(id=number, rows=[], more=more))
    assert [page.more for page in call.result()] == [True, True, False]


def test_a_refusal_is_raised_by_the_call(world):
    connection, peer = world.connect()
    call = Call(lambda: connection.call(OpenTag(id=0, name="a"), TagOpened))
    peer.say(Refused(id=peer.hear(OpenTag).message.id, error="UnknownTag", fields={"name": "a"}))
    assert isinstance(call.result(), UnknownTag)


def test_an_answer_of_the_wrong_kind_is_an_error(world):
    connection, peer = world.connect()
    call = Call(lambda: connection.call(OpenTag(id=0, name="a"), TagOpened))
    peer.done(OpenTag)
    assert "Done" in str(call.result())


def test_what_follows_an_answer_runs_before_later_notices(world):
    connection, peer = world.connect()
    call = Call(
        lambda: connection.call(OpenTag(id=0, name="a"), TagOpened, then=lambda _: world.owner.notices.append("then"))
    )
    number = peer.hear(OpenTag).message.id
    peer.say(opened(number))
    peer.say(TagGone(name="a"))
    call.result()
    assert world.owner.arrived.acquire(timeout=PATIENCE_S)
    assert [type(x).__name__ for x in world.owner.notices] == ["str", "tuple"]


def test_an_error_in_what_follows_is_the_callers(world):
    connection, peer = world.connect()
    call = Call(lambda: connection.call(OpenTag(id=0, name="a"), TagOpened, then=lambda _: 1 / 0))
    peer.say(opened(peer.hear(OpenTag).message.id))
    assert isinstance(call.result(), ZeroDivisionError)


def test_descriptors_travel_and_those_nobody_takes_are_closed(world):
    read, write = os.pipe()
    connection, peer = world.connect(fds=(read,))
    peer.say(
        RingUp(
            subscription=1,
            info=INFO,
            attributes=TagAttributes(),
            depth=1,
            capacity_bytes=1,
            born_after=True,
            ring=1,
            next_seq=0,
        ),
        (write, write),
    )
    assert world.owner.arrived.acquire(timeout=PATIENCE_S)
    assert world.owner.notices[0][1:] == (2, None)
    connection.post(UseMailbox(id=0, subscription=1), (read,))
    received = peer.done(UseMailbox)
    assert os.path.sameopenfile(received.fds[0], read)
    received.close()
    os.close(write)
    os.set_blocking(read, True)
    assert os.read(read, 1) == b""  # every copy of the writing end is closed
    os.close(read)


def test_a_handler_that_fails_does_not_end_the_connection(world, caplog):
    connection, peer = world.connect()
    handled = world.owner.noticed

    def fails(notice, received):
        handled(notice, received)
        raise RuntimeError("bad notice")

    world.owner.noticed = fails
    caplog.set_level("CRITICAL", "ringcast")
    for count in range(2):
        peer.say(SubscriberCount(publisher=1, count=count))
    for _ in range(2):
        assert world.owner.arrived.acquire(timeout=PATIENCE_S)
    assert connection.connected


def test_nobody_there(tmp_path):
    with pytest.raises(DaemonUnavailable, match="No such file"):
        Connection(str(tmp_path / "none"), Owner(), program="")


def test_a_daemon_that_hangs_up_on_hello(world):
    call = Call(lambda: Connection(world.path, world.owner, program=""))
    peer = world.accept()
    peer.hear(Hello)
    peer.sock.close()
    assert isinstance(call.result(), DaemonUnavailable)


def test_a_daemon_that_refuses_hello(world):
    call = Call(lambda: Connection(world.path, world.owner, program=""))
    peer = world.accept()
    peer.say(Refused(id=peer.hear(Hello).message.id, error="BadMessage", fields={"reason": "version"}))
    assert isinstance(call.result(), BadMessage)


def test_a_daemon_that_never_answers(world, monkeypatch):
    connection, peer = world.connect()
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.01)
    with pytest.raises(DaemonUnavailable, match="no answer"):
        connection.call(GetStatus(id=0), Done)
    late = peer.hear(GetStatus)
    answer = Done(id=late.message.id)
    peer.say(answer)
    peer.say(Done(id=12345))  # to a question nobody asked
    peer.say(TagGone(name="a"))
    for _ in range(2):
        assert world.owner.arrived.acquire(timeout=PATIENCE_S)
    assert world.owner.notices[0] == answer
    assert connection.connected
