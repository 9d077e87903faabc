"""Whatever bytes come to the data port: the decoder says what they are and reads nothing beyond them; what it lets
through, the next stage survives; and a delivery thread counts all of it and goes on."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast import _core

HEADER = struct.Struct("<HBBIQQqqIHH")
OUTCOMES = {"ok", "truncated", "foreign", "newer", "malformed"}
EDGES = [0, 1, 47, 48, 2**15, 2**16 - 1, 2**30, 2**30 + 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]


def packet(
    magic: int = 0x4352, version: int = 2, kind: int = 1, offset: int = 0, key: int = 7, seq: int = 0, length: int = 10,
    chunk: int = 100, data: bytes = b"0123456789",
) -> bytes:  # fmt: skip
    return HEADER.pack(magic, version, kind, offset, key, seq, 1, 2, length, chunk, 0) + data


def edge(limit: int) -> st.SearchStrategy[int]:
    return st.sampled_from([value for value in EDGES if value <= limit]) | st.integers(0, limit)


packets = st.builds(
    packet, magic=st.sampled_from([0x4352, 0x4352, 0x4352, 0]), version=st.sampled_from([2, 2, 2, 0, 1, 3, 255]),
    kind=st.sampled_from([1, 1, 0, 255]), offset=edge(2**32 - 1), key=edge(2**64 - 1), seq=edge(2**64 - 1),
    length=edge(2**32 - 1), chunk=edge(2**16 - 1), data=st.binary(max_size=200),
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    good = bytearray(packet(data=b"x" * 10))
    for _ in range(draw(st.integers(1, 4))):
        good[draw(st.integers(0, len(good) - 1))] = draw(st.integers(0, 255))
    return bytes(good[: draw(st.integers(0, len(good)))]) if draw(st.booleans()) else bytes(good)


@given(st.binary(max_size=300) | packets | damaged())
@settings(max_examples=500)
def test_the_decoder_says_what_it_is(datagram: bytes) -> None:
    outcome, header = _core.parse_datagram(datagram)
    assert outcome in OUTCOMES
    assert (outcome == "ok") is (header is not None)
    if header is None:
        return
    assert datagram[:2] == b"RC"
    assert header["offset"] % header["chunk"] == 0
    assert header["offset"] <= header["length"]
    assert len(datagram) - 48 == min(header["chunk"], header["length"] - header["offset"])


@given(st.lists(st.binary(max_size=100) | packets | damaged(), max_size=30))
@settings(max_examples=200)
def test_the_next_stage_survives_what_is_let_through(datagrams: list[bytes]) -> None:
    reassembly = _core.Reassembly(0, 1, 4096, 1000)
    seen = -1
    for now_ns, datagram in enumerate(datagrams):
        if _core.parse_datagram(datagram)[0] == "ok":
            for seq, _, data in reassembly.accept(datagram, now_ns * 500) + reassembly.tick(now_ns * 500):
                assert seq > seen
                assert len(data) <= 4096
                seen = seq
    assert reassembly.held_bytes <= _core.REASSEMBLY_WINDOW * 4096


@given(st.lists(st.binary(max_size=300) | packets | damaged(), max_size=30), st.booleans())
@settings(max_examples=200)
def test_an_opener_refuses_what_nobody_sealed(datagrams: list[bytes], publisher: bool) -> None:
    opener = _core.Opener(_core.ChannelSeal(7, bytes(range(32))), publisher=publisher)
    for datagram in datagrams:
        verdict, opened = opener.open(datagram)
        assert verdict in {"forged", "old_key"}
        assert opened is None
    assert opener.senders == 0


@given(packets | damaged(), st.data())
@settings(max_examples=300)
def test_a_sealed_packet_opens_as_it_was_or_not_at_all(datagram: bytes, data: st.DataObject) -> None:
    """What an authentic sender sealed may be anything; the decoder behind the seal says what it is."""
    sealer = _core.Sealer(_core.ChannelSeal(7, bytes(range(32))), 0)
    opener = _core.Opener(_core.ChannelSeal(7, bytes(range(32))))
    sealed = sealer.seal(datagram)
    if sealed is None:
        assert len(datagram) < 16
        return
    assert len(sealed) == len(datagram) + _core.SEAL_BYTES
    changed = bytearray(sealed)
    at = data.draw(st.integers(0, len(sealed) - 1))
    changed[at] ^= data.draw(st.integers(1, 255))
    assert opener.open(bytes(changed))[1] is None
    assert opener.open(sealed[: data.draw(st.integers(0, len(sealed) - 1))])[1] is None
    verdict, opened = opener.open(sealed)
    if verdict == "ok":
        assert opened == datagram
        assert _core.parse_datagram(opened)[0] in OUTCOMES
        assert opener.open(sealed)[0] == "replayed"
    else:  # a link sends data, confirmations, heartbeats and repairs alone
        assert (verdict, datagram[3] in {1, 2, 4, 5}) == ("forged", False)


def test_a_delivery_thread_goes_on(eventually: Callable[..., None]) -> None:
    chance = random.Random(11)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        delivery = _core.Delivery(receiver.fileno())
        mirror = delivery.open(key=7, depth=8, capacity_bytes=4096)
        said = 0
        for _ in range(2000):
            datagram = bytearray(packet(seq=chance.randrange(4), data=chance.randbytes(chance.randrange(40))))
            for _ in range(chance.randrange(3)):
                datagram[chance.randrange(len(datagram))] = chance.randrange(256)
            said += sender.send(datagram[: chance.randrange(1, len(datagram) + 1)]) > 0
            if said % 50 == 0:  # so that none is lost for want of room
                eventually(lambda: delivery.counters()["datagrams"] >= said)  # noqa: B023
        begin = mirror.next_seq
        sender.send(packet(seq=begin + 1000))
        sender.send(packet(seq=begin + 1001))
        eventually(lambda: mirror.next_seq == begin + 1002)
        counters = delivery.counters()
        assert all(counters[reason] for reason in OUTCOMES - {"ok"})
        delivery.close()
