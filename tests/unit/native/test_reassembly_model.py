"""Pieces that are lost, repeated, reordered, cut short and replayed: what leaves is always an ordered subsequence of
what was sent, each message once and whole, and complete when nothing went wrong. Memory stays bounded."""

from __future__ import annotations

import struct
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast import _core

CHUNK = 8
MOST_BYTES = 64
PATIENCE_NS = 1000


def payload(seq: int, length: int) -> bytes:
    return bytes((seq * 31 + at) % 251 for at in range(length))


def datagrams(seq: int, length: int) -> list[bytes]:
    """A message as its sender cuts it. See native/wire/datagram.hpp."""
    data = payload(seq, length)
    return [
        struct.pack("<HBBIQQqqIHH", 0x4352, 2, 1, offset, 1, seq, 1, 2, length, CHUNK, 0)
        + data[offset : offset + CHUNK]
        for offset in range(0, max(length, 1), CHUNK)
    ]


class Stage:
    def __init__(self, lengths: list[int], first: int = 0, step: int = 1) -> None:
        self.sent = {first + i * step: length for i, length in enumerate(lengths)}
        self.reassembly = _core.Reassembly(first, step, MOST_BYTES, PATIENCE_NS)
        self.expected = first
        self.step = step
        self.got: list[int] = []
        self.now_ns = 0

    def accept(self, datagram: bytes) -> None:
        try:
            self._check(self.reassembly.accept(datagram, self.now_ns))
        except ValueError:
            pass  # cut short on the way: the delivery thread counts and drops it

    def tick(self) -> None:
        self._check(self.reassembly.tick(self.now_ns))
        assert self.reassembly.wake_at_ns > self.now_ns, "a thread that sleeps until then would spin"

    def _check(self, messages: list[tuple[int, int, bytes]]) -> None:
        for seq, lost, data in messages:
            assert seq == self.expected + lost * self.step, "in order, each once, and loss counted as it was"
            assert data == payload(seq, self.sent[seq]), "whole"
            self.expected = seq + self.step
            self.got.append(seq)
        assert self.reassembly.held_bytes <= _core.REASSEMBLY_WINDOW * MOST_BYTES


lengths = st.lists(st.integers(0, MOST_BYTES), min_size=1, max_size=12)


def journey(stage: Stage, chance: Random) -> list[tuple[bytes, int]]:
    """The stream's datagrams as they arrive, with the time that passed before each."""
    sent = [datagram for seq, length in stage.sent.items() for datagram in datagrams(seq, length)]
    arriving: list[tuple[bytes, int]] = []
    for datagram in sent:
        for _ in range(chance.choice([1, 1, 1, 1, 0, 2])):
            cut = chance.choice([None] * 8 + [20, 49])
            waited_ns = chance.choice([0, 0, 1, PATIENCE_NS // 2, 2 * PATIENCE_NS])
            arriving.insert(chance.randint(max(0, len(arriving) - 6), len(arriving)), (datagram[:cut], waited_ns))
    return arriving + [(datagram, 0) for datagram in chance.choices(sent, k=5)]


seeds = st.integers(0, 2**32).map(Random)


@given(lengths, st.integers(0, 3), st.sampled_from([1, 2]), seeds)
@settings(max_examples=200, deadline=None)
def test_any_journey_ends_in_an_ordered_subsequence(lengths: list[int], first: int, step: int, chance: Random) -> None:
    stage = Stage(lengths, first * step, step)
    for datagram, waited_ns in journey(stage, chance):
        stage.now_ns += waited_ns
        stage.tick()
        stage.accept(datagram)
    stage.now_ns += 100 * PATIENCE_NS
    stage.tick()
    assert set(stage.got) <= set(stage.sent)


@given(lengths, seeds)
@settings(max_examples=100, deadline=None)
def test_a_good_journey_brings_everything_however_slow(lengths: list[int], chance: Random) -> None:
    stage = Stage(lengths)
    for seq, length in stage.sent.items():
        for datagram in datagrams(seq, length):
            stage.now_ns += chance.choice([0, 1, 10 * PATIENCE_NS])
            stage.tick()
            stage.accept(datagram)
            if chance.random() < 0.5:
                stage.accept(datagram)
    assert stage.got == list(stage.sent)


@given(lengths, seeds)
@settings(max_examples=100, deadline=None)
def test_pieces_of_one_message_in_any_order(lengths: list[int], chance: Random) -> None:
    stage = Stage(lengths)
    for seq, length in stage.sent.items():
        pieces = datagrams(seq, length)
        chance.shuffle(pieces)
        for datagram in pieces:
            stage.accept(datagram)
    assert stage.got == list(stage.sent)


def test_a_number_that_would_wrap_is_no_datagram() -> None:
    (datagram,) = datagrams(2**63, 3)
    with pytest.raises(ValueError, match="malformed"):
        _core.Reassembly(0, 1, MOST_BYTES, PATIENCE_NS).accept(datagram, 0)
