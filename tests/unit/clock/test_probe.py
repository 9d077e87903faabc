"""Probes are their own bytes, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringcast.clock.probe import SIZE, ClockProbe, decode_untrusted
from ringcast.errors import BadMessage

WORD = st.integers(0, 2**64 - 1)
TIME = st.integers(-(2**63), 2**63 - 1)


@given(key=WORD, nonce=WORD, heard=TIME, answered=TIME, is_answer=st.booleans())
def test_there_and_back(key: int, nonce: int, heard: int, answered: int, is_answer: bool) -> None:
    probe = ClockProbe(key, nonce, heard, answered, is_answer)
    assert len(probe.encode()) == SIZE
    assert decode_untrusted(probe.encode()) == probe


@given(st.binary(max_size=64))
def test_anything_else_is_refused(datagram: bytes) -> None:
    with pytest.raises(BadMessage):
        decode_untrusted(datagram)
    with pytest.raises(BadMessage):
        decode_untrusted(ClockProbe(1, 2).encode() + datagram[:1] if datagram else b"")
