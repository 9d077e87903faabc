"""A connection against a daemon of which every word is in the test's hands."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from ringcast.client import connection as module
from ringcast.client.connection import Connection
from ringcast.client.outbox import Outbox
from ringcast.control import link
from ringcast.control.answers import Done, Refused, TagListing, TagOpened, Welcome
from ringcast.control.notices import RingUp, SubscriberCount, TagGone
from ringcast.control.requests import Bye, GetStatus, Hello, ListTags, OpenTag, Unsubscribe, UseMailbox
from ringcast.errors import BadMessage, ClosedError, DaemonUnavailable, ForeignDaemon, ForkedError, UnknownTag
from ringcast.model.identity import PublisherInfo
from ringcast.model.tag import TagAttributes
from ringcast.testing.waiting import PATIENCE_S

INFO = PublisherInfo(id=1, node="n", tag="a", incarnation=1, pid=1, user="u")


class Peer:
    """The daemon's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(PATIENCE_S)

    def hear(self, kind: type) -> link.Received:
        received = link.receive_request(self.sock)
        assert received is not None
        assert isinstance(received.message, kind), received.message
        return received

    def say(self, message: object, fds: tuple[int, ...] = ()) -> None:
        link.send(self.sock, message, fds)

    def welcome(self) -> Peer:
        hello = self.hear(Hello)
        hello.close()
        self.say(Welcome(id=hello.message.id, node="n", daemon_pid=1))
        return self

    def done(self, kind: type) -> link.Received:
        received = self.hear(kind)
        self.say(Done(id=received.message.id))
        return received


class Owner:
    def __init__(self) -> None:
        self.notices: list[object] = []
        self.arrived = threading.Semaphore(0)
        self.on_restore = lambda: None
        self.restored = threading.Semaphore(0)

    def noticed(self, notice, received):
        self.notices.append((notice, len(received.fds), received.limit))
        self.arrived.release()

    def restore(self):
        self.on_restore()
        self.restored.release()

    def orphaned(self, answer):
        self.notices.append(answer)
        self.arrived.release()


class World:
    def __init__(self, path: str) -> None:
        self.path = path
        self.owner = Owner()
        self._opened: list = []
        self.listen()

    def listen(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(PATIENCE_S)
        self._opened.append(self.listener)

    def accept(self) -> Peer:
        peer = Peer(self.listener.accept()[0])
        self._opened.append(peer.sock)
        return peer

    def connect(self, **options) -> tuple[Connection, Peer]:
        peers: list[Peer] = []
        greeter = threading.Thread(target=lambda: peers.append(self.accept().welcome()))
        greeter.start()
        connection = Connection(self.path, self.owner, program="test", **options)
        greeter.join()
        self._opened.append(connection)
        return connection, peers[0]

    def close(self) -> None:
        for thing in self._opened:
            if not isinstance(thing, Connection):
                thing.close()
        for thing in self._opened:
            thing.close()


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 0.01)
    world = World(str(tmp_path / "s"))
    yield world
    world.close()


class Call:
    """A call under way on a thread of its own."""

    def __init__(self, function) -> None:
        self.outcome: object = None
        self._thread = threading.Thread(target=self._run, args=(function,))
        self._thread.start()

    def _run(self, function) -> None:
        try:
            self.outcome = function()
        except Exception as exc:
            self.outcome = exc

    def result(self) -> object:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.outcome


def opened(number: int, name: str = "a") -> TagOpened:
    return TagOpened(id=number, name=name, tag_id=1, attributes=TagAttributes())


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
