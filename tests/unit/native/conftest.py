"""Rings without a daemon: a writer, and readers that map it as any other process would."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ringcast import _core


class Ring:
    """A writer and what others need to read it. Nothing here knows more than the descriptors and the geometry."""

    def __init__(self, depth: int = 16, capacity_bytes: int = 4096, **options: Any) -> None:
        self.geometry = {"depth": depth, "capacity_bytes": capacity_bytes}
        self.writer = _core.RingWriter(**self.geometry, **options)
        self.send = self.writer.send

    @property
    def grant(self) -> dict[str, int]:
        return {**self.geometry, "incarnation": self.writer.incarnation}

    def attach(self, reader: _core.RingReader, **options: Any) -> _core.RingReader:
        reader.attach(self.writer.ring_fd, self.writer.bell_fd, **self.grant, **options)
        return reader

    def reader(self, start: int = _core.START_NEW, decode: Any = None, **options: Any) -> _core.RingReader:
        return self.attach(_core.RingReader(**options), start=start, decode=decode, tag="lab/temp", publisher="me")

    def history(self, **options: Any) -> _core.RingHistory:
        history = _core.RingHistory()
        history.attach(self.writer.ring_fd, **self.grant, **options)
        return history

    def monitor(self) -> _core.RingMonitor:
        return _core.RingMonitor(self.writer.ring_fd, self.writer.bell_fd, **self.grant)


class Announcer:
    """The daemon's part in a fan-out: it says on a socket whose mailboxes to ring, and that it said so."""

    def __init__(self, ring: Ring) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ring.writer.attach_fanout(theirs.fileno())
        self._monitor = ring.monitor()
        page = self._monitor.take_fanout_fd()
        socket.send_fds(self.socket, [struct.pack("=IIQ", 7, 0, 0)], [page])
        os.close(page)

    def add(self, number: int, mailbox_fd: int) -> None:
        socket.send_fds(self.socket, [struct.pack("=IIQ", 1, 0, number)], [mailbox_fd])
        self._monitor.bump_fanout()

    def remove(self, number: int) -> None:
        self.socket.send(struct.pack("=IIQ", 2, 0, number))
        self._monitor.bump_fanout()


@pytest.fixture
def make_ring() -> Callable[..., Ring]:
    return Ring


@pytest.fixture
def ring() -> Ring:
    return Ring()


@pytest.fixture
def announcer() -> Iterator[Callable[[Ring], Announcer]]:
    made: list[Announcer] = []

    def make(ring: Ring) -> Announcer:
        made.append(Announcer(ring))
        return made[-1]

    yield make
    for one in made:
        one.socket.close()
