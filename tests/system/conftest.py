"""A client that speaks the control protocol packet by packet, for what no well-behaved session would do."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ringcast import _core
from ringcast.control import link
from ringcast.control.messages import GetStatus, Hello, Publish, Published, Status

PATIENCE_S = 30.0


class Wire:
    """One control connection. `ask` returns the answer; notices that came before it are kept in `notices`."""

    def __init__(self, path: str, *, greet: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.notices: list[Any] = []
        self.writers: list[_core.RingWriter] = []
        self._fanouts: list[socket.socket] = []
        self._ids = itertools.count(1)
        if greet:
            self.ask(Hello, program="wire")

    def receive(self) -> Any:
        """The next message of any kind, without its descriptors; None at the end of file."""
        try:
            received = link.receive_reply(self.socket)
        except ConnectionResetError:  # an end of file with something of ours unread
            return None
        if received is None:
            return None
        received.close()
        return received.message

    def ask(self, kind: Any, fds: list[int] | None = None, **fields: Any) -> Any:
        number = next(self._ids)
        link.send(self.socket, kind(id=number, **fields), fds or [])
        while True:
            message = self.receive()
            if message is None or getattr(message, "id", None) in (number, 0):
                return message
            self.notices.append(message)

    def notice(self) -> Any:
        """The oldest notice not looked at, waiting for one if there is none."""
        return self.notices.pop(0) if self.notices else self.receive()

    def status(self) -> Status:
        found = self.ask(GetStatus)
        assert isinstance(found, Status)
        return found

    def publish(self, tag: str, depth: int = 16, capacity_bytes: int = 4096) -> Published:
        writer = _core.RingWriter(depth=depth, capacity_bytes=capacity_bytes)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.writers.append(writer)
        self._fanouts.append(ours)
        with theirs:
            answer = self.ask(
                Publish, [writer.ring_fd, writer.bell_fd, theirs.fileno()],
                tag=tag, incarnation=writer.incarnation, depth=depth, capacity_bytes=capacity_bytes,
            )  # fmt: skip
        assert isinstance(answer, Published)
        return answer

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
        for sock in (self.socket, *self._fanouts):
            sock.close()


@pytest.fixture
def open_wire() -> Iterator[Callable[..., Wire]]:
    made: list[Wire] = []

    def make(path: str, **how: Any) -> Wire:
        made.append(Wire(path, **how))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


@pytest.fixture
def wire(daemon: Any, open_wire: Callable[..., Wire]) -> Wire:
    return open_wire(daemon.socket_path)
