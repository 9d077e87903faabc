"""Somebody between two nodes sees every packet of a sealed channel: nothing of it can be read, and what is changed or
sent twice is dropped and counted."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ringcast.testing.bench import Bench, Path, bench, sealed
from ringcast.transport import find

HOST = "127.0.0.1"
SECRET = b"nobody on the way may read this"


class Between:
    """Forwards what comes to the receiving end, and keeps it."""

    def __init__(self, kind: socket.SocketKind) -> None:
        self.seen: list[bytes] = []
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.bind((HOST, 0))
        self.port = self.socket.getsockname()[1]
        self.to = 0

    def forward(self) -> None:
        try:
            while packet := self.socket.recv(65_536):
                self.seen.append(packet)
                self.send(packet)
        except OSError:
            pass

    def send(self, packet: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.sendto(packet, (HOST, self.to))

    def forward_stream(self) -> None:
        try:
            self.socket.listen()
            stream, _ = self.socket.accept()
            with stream, socket.create_connection((HOST, self.to)) as out:
                while data := stream.recv(65_536):
                    self.seen.append(data)
                    out.sendall(data)
        except OSError:
            pass


class Elsewhere:
    """A receiving end as its sender finds it: at the port of whoever is between."""

    def __init__(self, true: Any, port: int) -> None:
        self._true = true
        self.port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)


@contextmanager
def tapped(name: str) -> Iterator[tuple[Bench, Path, Between]]:
    between = Between(socket.SOCK_STREAM if name == "tcp" else socket.SOCK_DGRAM)
    with bench(find(name)) as b, sealed():
        between.to = b.receiving.port
        target = between.forward_stream if name == "tcp" else between.forward
        thread = threading.Thread(target=target)
        thread.start()
        try:
            b.receiving = Elsewhere(b.receiving, between.port)
            with b.path() as path:
                yield b, path, between
        finally:
            # Whoever sleeps in a call is not woken by closing.
            between.socket.shutdown(socket.SHUT_RDWR) if name == "tcp" else _wake(between)
            thread.join()
            between.socket.close()


def _wake(between: Between) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(b"", (HOST, between.port))


@pytest.mark.parametrize("name", ["udp", "tcp", "nak", "parity"])
def test_nothing_can_be_read(name: str) -> None:
    with tapped(name) as (b, path, between):
        for i in range(20):
            b.send(SECRET + b"%d" % i)
        assert [m.data for m in path.receive(20)] == [SECRET + b"%d" % i for i in range(20)]
        heard = b"".join(between.seen)
        assert len(heard) > 20 * len(SECRET)
        assert SECRET not in heard
        assert SECRET[8:16] not in heard


@pytest.mark.parametrize("name", ["udp", "nak"])
def test_what_is_sent_again_or_changed_is_counted(name: str, eventually: Callable[..., None]) -> None:
    with tapped(name) as (b, path, between):
        b.send(b"first")
        assert path.receive(1)[0].data == b"first"
        packet = next(one for one in between.seen if one[3] == 1)

        def counted() -> dict[str, int]:
            return {reason: path.mirror.counters()[reason] for reason in ("replayed", "forged", "old_key")}

        before = counted()
        for due in range(1, 21):
            between.send(packet)
            eventually(lambda due=due: counted()["replayed"] == before["replayed"] + due)
        for bit in range(8 * 16, 8 * len(packet), 7):
            changed = bytearray(packet)
            changed[bit // 8] ^= 1 << bit % 8
            total = sum(counted().values())
            between.send(bytes(changed))
            eventually(lambda total=total: sum(counted().values()) == total + 1)
        b.send(b"second")
        (message,) = path.receive(1)
        assert (message.data, message.lost) == (b"second", 0)


def test_a_stranger_who_knows_a_streams_key_neither_ends_nor_joins_it(eventually: Callable[..., None]) -> None:
    """It connects before the first message, says the channel's key, and sends noise, a record of noise, and nothing."""
    with sealed(), bench(find("tcp")) as b:
        with b.path() as first:
            preamble = _preamble(first)
            strangers = [socket.create_connection((HOST, b.receiving.port)) for _ in range(3)]
            try:
                for stranger, words in zip(
                    strangers, (bytes(100), (60).to_bytes(4, "little") + bytes(76), b""), strict=True
                ):
                    stranger.sendall(preamble + words)
                b.send(b"one")
                assert first.receive(1)[0].data == b"one"
                assert b.receiving.ended() == []
                # The true stream has proven itself: others are refused.
                late = socket.create_connection((HOST, b.receiving.port))
                strangers.append(late)
                late.sendall(preamble)
                eventually(lambda: first.mirror.counters()["refused"] >= 1)
                b.send(b"two")
                assert first.receive(1)[0].data == b"two"
            finally:
                for stranger in strangers:
                    stranger.close()


def test_a_changed_record_ends_the_stream_before_anything_of_it_is_delivered(eventually: Callable[..., None]) -> None:
    with sealed(), bench(find("tcp")) as b, b.path() as path:
        b.send(b"one")
        assert path.receive(1)[0].data == b"one"
        assert path.mirror.counters()["forged"] == 0
        path.sending._socket.send((60).to_bytes(4, "little") + bytes(76))  # type: ignore[attr-defined]
        eventually(lambda: path.mirror.counters()["forged"] == 1)
        eventually(lambda: b.receiving.ended() == [path.channel.key])
        path.expect_silence()


def _preamble(path: Path) -> bytes:
    from ringcast.transport.streams.intake import MAGIC, PREAMBLE

    return PREAMBLE.pack(MAGIC, path.channel.key)
