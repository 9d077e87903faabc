"""A sending end that fails by itself while the other node lives."""

from __future__ import annotations

import socket
from collections.abc import Callable

from ringcast.testing.bench import Path, Publisher
from ringcast.transport.tcp import Tcp, sent_again


def test_both_ends_learn_that_the_pump_broke(eventually: Callable[..., None]) -> None:
    tcp = Tcp()
    receiving = tcp.receive("127.0.0.1")
    publisher = Publisher(depth=16, capacity_bytes=4096, max_wait_s=1.0)
    with Path(tcp, receiving, publisher, first_seq=0, every=1, reliable=True) as path:
        publisher.writer.send(b"one")
        assert [bytes(message.data) for message in path.receive(1)] == [b"one"]
        assert not path.sending.broken
        path.sending._socket.shutdown(socket.SHUT_WR)  # type: ignore[attr-defined]
        publisher.writer.send(b"two")
        eventually(lambda: path.sending.broken)
        eventually(lambda: path.channel.key in receiving.ended())
    publisher.close()
    receiving.close()


def test_the_kernel_says_what_it_sent_and_sent_again(eventually: Callable[..., None]) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as stream,
    ):
        taken, _ = listening.accept()
        with taken:
            assert sent_again(stream) == {"segments": 0, "resent": 0}
            stream.sendall(b"x")
            assert taken.recv(1) == b"x"
            eventually(lambda: sent_again(stream) == {"segments": 1, "resent": 0})
    assert sent_again(stream) == {}, "closed"
