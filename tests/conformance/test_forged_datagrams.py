"""Datagrams that carry a channel's key and were not sent by its ends: counted by reason, and nothing comes of them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

import pytest

from ringcast.testing.transports import Bench, Path, bench
from ringcast.transport import find

MAGIC, VERSION, REPAIR, NAK, CONFIRM, HEARTBEAT, ACK, CREDIT = 0x4352, 2, 2, 3, 4, 5, 6, 7
FAR = 1 << 40


def control(path: Path, kind: int, body: bytes, sender: int = 5) -> bytes:
    assert path.channel.seat is not None
    return struct.pack("<HBBIQ", MAGIC, VERSION, kind, sender, path.channel.seat.key) + body


def repair(path: Path, *listed: tuple[int, int], symbol: bytes = bytes(60)) -> bytes:
    """Of packets (ahead of 0, piece)."""
    head = struct.pack("<QBBHI", 0, 0, len(listed), len(symbol), 0)
    return control(path, REPAIR, head + b"".join(struct.pack("<II", *one) for one in listed) + symbol)


def forgeries(path: Path, far: int) -> list[bytes]:
    """One number far off is not believed; a second one near it would be."""
    return [
        repair(path, (0, 0), symbol=b"\xff" * 60),  # of a packet that is here, or makes nonsense of one that is not
        repair(path, (7, 0)),
        repair(path, (0, 0), (0, 0)),  # a list that is not ascending
        repair(path, (0, 0), symbol=bytes(4)),
        control(path, REPAIR, b""),
        control(path, HEARTBEAT, struct.pack("<QQ", 9, 3) + bytes(16)),  # ends before it begins
        control(path, HEARTBEAT, struct.pack("<QQ", far, far + 10) + bytes(16)),
        control(path, NAK, struct.pack("<IIQ", 200, 0, 0)),
        control(path, CONFIRM, struct.pack("<IIQQIII", 1, 0, 0, far, 5, 0, 0)),
        control(path, ACK, bytes(3)),
        control(path, 9, bytes(16)),
    ]


@pytest.mark.parametrize("name", ["nak", "lateral+nak:r=4", "parity", "multicast+lateral", "ack"])
def test_a_receiver_is_sent_forgeries(name: str) -> None:
    with bench(find(name)) as b, b.path() as path, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        _send(b, path, 0)
        for turn in range(3):
            for datagram in forgeries(path, FAR << turn):
                forger.sendto(datagram, ("127.0.0.1", b.receiving.port))
        _send(b, path, 100)
        counters = path.mirror.counters()
        assert counters["malformed"] + counters["absurd"] + counters["forged"] >= 6
        assert b.receiving.counters()["malformed"] >= 3  # no kind of datagram at all
        assert counters["lost"] == 0


@pytest.mark.parametrize("name", ["nak", "ack", "parity+nak"])
def test_the_senders_node_is_sent_forgeries(name: str, eventually: Callable[..., None]) -> None:
    with bench(find(name)) as b, b.path(reliable=True) as path:
        assert path.channel.seat is not None
        _send(b, path, 0)
        before = path.sending.counters()
        forged = (
            control(path, NAK, struct.pack("<IIQQIII", 1, 0, 0, FAR, 5, 0, 0)),  # asks for what was never sent
            control(path, NAK, struct.pack("<IIQ", 1, 0, 0)),
            control(path, ACK, struct.pack("<QQ", FAR, 0)),
            control(path, CREDIT, struct.pack("<Q", FAR), sender=77),
            control(path, CREDIT, b""),
            b"RC",
        )
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:

            def are_counted() -> bool:
                for datagram in forged:  # again each time: a busy machine may drop some before anybody sees them
                    forger.sendto(datagram, ("127.0.0.1", path.channel.seat.feedback))
                return _refused(path.sending.counters()) >= _refused(before) + 3

            are_counted()
            _send(b, path, 100)
            eventually(are_counted)
        after = path.sending.counters()
        # On a busy machine the true receiver asks for each message, and again: not for what the forgeries name.
        assert after["repairs"] - before["repairs"] < 1_000


def _refused(counters: dict[str, int]) -> int:
    return counters["malformed"] + counters["absurd"]


def _send(b: Bench, path: Path, first: int) -> None:
    """A hundred messages, which all arrive."""
    b.send(*(b"%d" % i for i in range(first, first + 100)))
    assert [message.data for message in path.receive(100)] == [b"%d" % i for i in range(first, first + 100)]
