"""Nothing from the network is believed: what cannot be is counted and dropped, and changes nothing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recovery_network import KEY, MS, Network, datagrams, dice, place

from ringcast import _core

STAGES = ["ordering", "parity", "lateral", "nak", "ack"]
KINDS = range(10)
NOT_BELIEVED_FROM_A_PEER = (0, 2, 3, 4, 6, 7, 8, 9)
"""Data and heartbeats with the right key are the publisher's word."""


def control(kind: int, body: bytes = b"", *, sender: int = 1, key: int = KEY) -> bytes:
    return struct.pack("<2sBBIQ", b"RC", 2, kind, sender, key) + body


def heartbeat(first: int, following: int) -> bytes:
    return control(5, struct.pack("<QQQII", first, following, 0, 0, 0), sender=0xFFFFFFFF)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(NOT_BELIEVED_FROM_A_PEER), st.binary(max_size=120)), max_size=30))
def test_noise_between_packets_costs_no_packet(noise: list[tuple[int, bytes]]) -> None:
    stack = _core.Receiving(STAGES, key=KEY)
    delivered = []
    for seq, (kind, body) in enumerate(noise):
        for datagram in (control(kind, body), datagrams(seq, b"x" * 12)[0]):
            delivered += [a[1] for a in stack.on_datagram(datagram, seq) if a[0] == "deliver"]
    assert [place(packet)[0] for packet in delivered] == list(range(len(noise)))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(KINDS), st.binary(max_size=200))
def test_a_sender_takes_anything(kind: int, body: bytes) -> None:
    stack = _core.Sending(STAGES, lambda *_: None, lambda: 0, key=KEY, receivers=2)
    stack.on_sent(datagrams(0, b"x")[0], 0)
    stack.on_datagram(control(kind, body), MS)
    stack.tick(2 * MS)


@pytest.mark.parametrize(
    ("datagram", "counter"),
    [
        (b"", "malformed"),
        (b"RC", "malformed"),
        (b"XX" + control(5, bytes(32))[2:], "malformed"),
        (control(5, struct.pack("<QQ", 9, 3) + bytes(16)), "malformed"),  # begins after it ends
        (control(5, bytes(31)), "malformed"),
        (control(3, struct.pack("<IIQ", 0, 0, 0)), "malformed"),  # asks for nothing
        (control(3, struct.pack("<IIQ", 65, 0, 0) + bytes(65 * 20)), "malformed"),
        (control(3, struct.pack("<IIQQIII", 1, 0, 0, 0, 0, 0, 0)), "malformed"),  # no messages
        (control(2, bytes(16)), "malformed"),
        (control(7, bytes(16)), "malformed"),
        (control(5, bytes(32), key=KEY + 1), "stranger"),
        (heartbeat(0, 1 << 60), "absurd"),
    ],
)
def test_what_cannot_be_is_counted(datagram: bytes, counter: str) -> None:
    stack = _core.Receiving(["ordering", "lateral", "nak"], key=KEY)
    assert stack.on_datagram(datagram, 0) == []
    assert stack.counters()[counter] == 1
    assert stack.end_seq == 0


def test_a_repair_with_one_bit_wrong_gives_no_packet() -> None:
    network = Network(["parity"], receivers=1, tuning={"r": 2, "c": 1})
    packets = [datagrams(seq, b"abc")[0] for seq in range(2)]
    (repair,) = [a[3] for p in packets for a in network.sending.on_sent(p, 0) if a[0] == "send"]
    for bit in range(8 * 48, 8 * len(repair)):
        forged = bytearray(repair)
        forged[bit // 8] ^= 1 << bit % 8
        stack = _core.Receiving(["parity"], key=KEY)
        stack.on_datagram(packets[0], 0)
        delivered = [a[1] for a in stack.on_datagram(bytes(forged), 0) if a[0] == "deliver"]
        # Times, flags and the payload itself are not checked by anything but the publisher's key.
        assert all(place(packet) == (1, 0) and len(packet) == len(packets[1]) for packet in delivered)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(script=st.integers(0, 2**32), forged=st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_absurd_heartbeats_do_not_stop_a_stream(script: int, forged: list[int]) -> None:
    network = Network(["ordering", "nak"], fate=dice(script, 0.1, 0.1, 0.1), tuning={"tries": 64})
    far = [number for number in forged if number > 1 << 20]
    for seq in range(40):
        network.send(seq, b"x")
        if seq < len(far) and (seq == 0 or abs(far[seq] - far[seq - 1]) > 2048):
            for i, stack in enumerate(network.receiving):
                network._do(i, stack.on_datagram(heartbeat(0, far[seq]), network.now_ns))
        network.run(network.now_ns + MS)
    network.run(network.now_ns + 20_000 * MS)
    for delivered in network.delivered:
        assert [place(packet)[0] for packet in delivered] == list(range(40))
