"""Programs of another user on this node: honest ones, and one that speaks the protocol by itself and keeps what it
gets."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import Daemon

import ringcast
from ringcast import _core
from ringcast.control import link
from ringcast.control.answers import Refused
from ringcast.control.notices import RingUp
from ringcast.control.requests import Hello, Request, Subscribe
from ringcast.testing.waiting import PATIENCE_S

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Act as another user. What the kernel says of a connection is decided when it is made."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class RuledNode:
    """A daemon with rules, in a place that other users may enter."""

    def __init__(self, rules: str = "", *options: str) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="ringcast-rules-"))
        self._place.chmod(0o755)
        self._config = self._place / "ringcast.toml"
        self._config.write_text(rules)
        self.socket_path = str(self._place / "d.sock")
        self.audit = Path(f"{self.socket_path}.audit")
        self._daemon = Daemon(Path(self.socket_path)).start("--config", str(self._config), *options)
        self._sessions: list[ringcast.Session] = []

    @property
    def pid(self) -> int:
        assert self._daemon.process is not None
        return self._daemon.process.pid

    def session(self) -> ringcast.Session:
        self._sessions.append(ringcast.connect(socket=self.socket_path, start=False))
        return self._sessions[-1]

    def foreign_session(self) -> ringcast.Session:
        with nobody():
            return self.session()

    def outsider(self) -> Outsider:
        with nobody():
            return Outsider(self.socket_path)

    def rule(self, rules: str) -> None:
        """Other rules from now on."""
        self._config.write_text(rules)
        os.kill(self.pid, signal.SIGHUP)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._daemon.stop()
        shutil.rmtree(self._place)


class Outsider:
    """A program that keeps what it is given, whatever it is told afterwards."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._socket.settimeout(PATIENCE_S)
        self._id = 0
        self.notices: list[Any] = []
        self.rings: list[tuple[RingUp, list[int]]] = []

    def ask(self, request: Request, fds: tuple[int, ...] = ()) -> Any:
        """The answer; notices that come before it are kept."""
        link.send(self._socket, request, fds)
        while True:
            received = link.receive_reply(self._socket)
            assert received is not None, "the daemon ended the connection"
            if isinstance(received.message, RingUp):
                self.rings.append((received.message, list(received.fds)))
            if getattr(received.message, "id", None) == request.id:
                return received.message
            self.notices.append(received.message)

    def hello(self) -> Any:
        return self.ask(Hello(id=1, program="outsider"))

    def subscribe(self, pattern: str, **options: Any) -> Any:
        self._id += 1
        return self.ask(Subscribe(id=100 + self._id, pattern=pattern, subscription=self._id, **options))

    def reader(self, number: int = 0) -> _core.RingReader:
        """Of the first ring that it was given, or of another, without anybody's leave."""
        up, (ring_fd, bell_fd) = self.rings[number]
        made = _core.RingReader()
        made.attach(
            ring_fd, bell_fd, depth=up.depth, capacity_bytes=up.capacity_bytes, incarnation=up.ring,
            start=_core.START_EARLIEST,
        )  # fmt: skip
        return made

    def hears_nothing(self) -> bool:
        return not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        for _, fds in self.rings:
            link.close_all(fds)
        self._socket.close()


def is_refused(answer: Any, action: str) -> bool:
    return isinstance(answer, Refused) and answer.error == "NotAllowed" and answer.fields["action"] == action
