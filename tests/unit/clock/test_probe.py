"""Probes are their own bytes, and nothing else is one; who does not know the secret cannot make or change one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.clock.probe import SECRET_BYTES, SIZE, ClockProbe, decode_untrusted, is_proven
from ringcast.errors import BadMessage

WORD = st.integers(0, 2**64 - 1)
SECRET = bytes(range(SECRET_BYTES))
TIME = st.integers(-(2**63), 2**63 - 1)


@given(key=WORD, nonce=WORD, heard=TIME, answered=TIME, is_answer=st.booleans())
def test_there_and_back(key: int, nonce: int, heard: int, answered: int, is_answer: bool) -> None:
    probe = ClockProbe(key, nonce, heard, answered, is_answer)
    datagram = probe.encode(SECRET)
    assert len(datagram) == SIZE
    assert decode_untrusted(datagram) == probe
    assert is_proven(datagram, SECRET)


@given(bit=st.integers(0, SIZE * 8 - 1), is_answer=st.booleans())
def test_no_bit_of_it_can_be_changed(bit: int, is_answer: bool) -> None:
    datagram = bytearray(ClockProbe(1, 2, 3, 4, is_answer).encode(SECRET))
    datagram[bit // 8] ^= 1 << bit % 8
    assert not is_proven(bytes(datagram), SECRET)


@given(st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES).filter(lambda other: other != SECRET))
def test_with_another_secret_nothing_is_proven(other: bytes) -> None:
    assert not is_proven(ClockProbe(1, 2).encode(other), SECRET)


@given(st.binary(max_size=64))
def test_anything_else_is_refused(datagram: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_untrusted(datagram)
    with pytest.raises(BadMessage):
        decode_untrusted(ClockProbe(1, 2).encode(SECRET) + datagram[:1] if datagram else b"")
