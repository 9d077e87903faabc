"""A short way without losses is not paced; everything else is as the node has it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ringcast.transport.streams import congestion
from ringcast.transport.streams.congestion import Congestion, Progress


class Stream:
    """A socket, as far as it is asked for its congestion control."""

    def __init__(self, usual: bytes) -> None:
        self.used = usual
        self.refuses = False

    def getsockopt(self, level: int, option: int, length: int) -> bytes:
        assert (level, option) == (socket.IPPROTO_TCP, socket.TCP_CONGESTION)
        return self.used.ljust(length, b"\0")

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        assert (level, option) == (socket.IPPROTO_TCP, socket.TCP_CONGESTION)
        if self.refuses:
            raise PermissionError("not allowed here")
        self.used = value


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the kernel says of every stream."""
    told = SimpleNamespace(way_ns=20_000, segments=0, lost=0)
    monkeypatch.setattr(congestion, "Progress", lambda stream: told)
    return told


def begun(stream: Stream) -> Congestion:
    return Congestion(stream)  # type: ignore[arg-type]


@pytest.mark.parametrize("usual", [b"bbr", b"bbr2"])
def test_a_short_way_is_not_paced(usual: bytes, progress: SimpleNamespace) -> None:
    stream = Stream(usual)
    one = begun(stream)
    one.connected()
    assert (stream.used, one.unpaced) == (b"reno", True)


def test_what_does_not_pace_stays(progress: SimpleNamespace) -> None:
    stream = Stream(b"cubic")
    one = begun(stream)
    progress.way_ns = 50_000_000
    one.connected()
    assert (stream.used, one.unpaced) == (b"cubic", False)


def test_a_long_way_has_what_the_node_has(progress: SimpleNamespace) -> None:
    stream = Stream(b"bbr")
    one = begun(stream)
    progress.way_ns = congestion.SHORT_NS + 1
    one.connected()
    assert (stream.used, one.unpaced) == (b"bbr", False)


def test_where_packets_are_lost_it_goes_back_and_stays(progress: SimpleNamespace) -> None:
    stream = Stream(b"bbr")
    one = begun(stream)
    one.connected()
    progress.segments, progress.lost = 999, 900
    one.look()
    assert one.unpaced, "too few to tell"
    progress.segments, progress.lost = 200_000, 1_999
    one.look()
    assert one.unpaced, "less than one in a hundred"
    progress.segments, progress.lost = 210_000, 2_100
    one.look()
    assert (stream.used, one.unpaced) == (b"bbr", False)
    progress.segments = 10_000_000
    one.look()
    assert stream.used == b"bbr"


def test_what_the_kernel_refuses_leaves_the_stream_as_it_is(progress: SimpleNamespace) -> None:
    stream = Stream(b"bbr")
    stream.refuses = True
    one = begun(stream)
    one.connected()
    assert (stream.used, one.unpaced) == (b"bbr", False)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.create_connection(listening.getsockname()) as stream:
            taken, _ = listening.accept()
            with taken:
                yield stream, taken


def test_what_a_real_stream_says(pair: tuple[socket.socket, socket.socket]) -> None:
    stream, taken = pair
    stream.sendall(b"x")
    assert taken.recv(1) == b"x"
    told = Progress(stream)
    assert (told.segments, told.lost) == (1, 0)
    assert 0 < told.way_ns < 10_000_000_000


def test_a_real_stream_that_was_closed(pair: tuple[socket.socket, socket.socket]) -> None:
    one = Congestion(pair[0])
    pair[0].close()
    one.connected()
    one.look()
    assert not one.unpaced
