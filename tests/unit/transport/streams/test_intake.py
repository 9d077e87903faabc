"""Streams are let in one by one: in pieces, among strangers, in a crowd, and when descriptors run out for a while."""

from __future__ import annotations

import errno
import os
import queue
import socket
from collections.abc import Callable, Iterator

import pytest

from ringcast.testing.waiting import PATIENCE_S
from ringcast.transport.streams.intake import MAGIC, PREAMBLE, StreamIntake


class ShortOfDescriptors(socket.socket):
    """A listener whose first `failures` accepts find no descriptor."""

    failures = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


class Place:
    def __init__(self, failures: int = 0, **options: float) -> None:
        listener = ShortOfDescriptors(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        listener.failures = failures
        self.address = listener.getsockname()
        self.let_in: queue.Queue[int] = queue.Queue()
        self.intake = StreamIntake(listener, lambda key, fd: self.let_in.put(key), **options)  # type: ignore[arg-type]
        self._streams: list[socket.socket] = []

    def dial(self, said: bytes = b"") -> socket.socket:
        stream = socket.create_connection(self.address, PATIENCE_S)
        stream.sendall(said)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        self.intake.close()
        for stream in self._streams:
            stream.close()


@pytest.fixture
def make_place() -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def make(*args: int, **options: float) -> Place:
        made.append(Place(*args, **options))
        return made[-1]

    yield make
    for place in made:
        place.close()


def test_a_stream_says_its_channel_in_pieces(make_place: Callable[..., Place]) -> None:
    place = make_place()
    preamble = PREAMBLE.pack(MAGIC, 7)
    stream = place.dial(preamble[:5])
    place.dial(PREAMBLE.pack(MAGIC, 8))
    assert place.let_in.get(timeout=PATIENCE_S) == 8, "nobody waits for a slow one"
    stream.sendall(preamble[5:])
    assert place.let_in.get(timeout=PATIENCE_S) == 7


def test_descriptors_run_out_for_a_while(make_place: Callable[..., Place]) -> None:
    place = make_place(3)
    place.dial(PREAMBLE.pack(MAGIC, 7))
    assert place.let_in.get(timeout=PATIENCE_S) == 7
    assert place.intake.counters()["no_room"] == 3


def test_those_who_say_nothing_give_way_to_newer_ones(make_place: Callable[..., Place]) -> None:
    place = make_place(max_newcomers=4)
    silent = [place.dial() for _ in range(10)]
    place.dial(PREAMBLE.pack(MAGIC, 7))
    assert place.let_in.get(timeout=PATIENCE_S) == 7
    for stream in silent[:6]:
        assert stream.recv(1) == b"", "closed"
    assert place.intake.counters()["crowded"] == 7


def test_whoever_says_nothing_in_time_or_something_else_is_a_stranger(make_place: Callable[..., Place]) -> None:
    place = make_place(preamble_timeout_s=0.01)
    assert place.dial().recv(1) == b""
    assert place.dial(b"GET / HTTP/1.1\r\n\r\n"[: PREAMBLE.size]).recv(1) == b""
    assert place.intake.counters()["stranger"] == 2
    assert place.let_in.empty()
