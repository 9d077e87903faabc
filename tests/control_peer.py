"""A daemon's end of a control connection for tests, moved by hand."""

from __future__ import annotations

import os
import socket
import threading

from ringcast.client.connection import Connection
from ringcast.control import link
from ringcast.control.answers import Done, TagOpened, Welcome
from ringcast.control.requests import Hello
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
