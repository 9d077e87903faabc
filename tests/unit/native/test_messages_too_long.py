"""No message is longer than every path can carry: the call that would send one says so."""

from __future__ import annotations

import mmap

import pytest

from ringcast import _core
from ringcast.errors import MessageTooLarge

MOST = 2**30
RING = 2**34
"""Sparse: pages of a ring that nobody writes take no memory."""
NORESERVE = 0x4000
"""MAP_NORESERVE of Linux, which `mmap` has by name from Python 3.13 on."""


def test_a_reservation_beyond_the_limit_is_refused_and_names_it() -> None:
    writer = _core.RingWriter(depth=4, capacity_bytes=RING)
    with pytest.raises(
        MessageTooLarge, match=rf"longer than any message may be \({MOST} bytes\); send it in parts"
    ) as caught:
        writer.reserve(2**32 + 5)
    assert (caught.value.length, caught.value.most_bytes) == (2**32 + 5, MOST)
    with pytest.raises(MessageTooLarge):
        writer.reserve(MOST + 1)
    writer.reserve(MOST).cancel()


@pytest.mark.parametrize("kind", ["publisher", "stage"])
def test_a_message_of_more_than_four_gigabytes_is_refused_before_it_is_copied(kind: str) -> None:
    with mmap.mmap(
        -1, 2**32 + 5, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, prot=mmap.PROT_READ
    ) as zeros:
        if kind == "publisher":
            writer = _core.RingWriter(depth=4, capacity_bytes=RING)
            with pytest.raises(MessageTooLarge, match="longer than any message"):
                writer.send(zeros)
            assert writer.next_seq == 0
        else:
            stage = _core.StageWriter(depth=4, capacity_bytes=RING)
            with pytest.raises(MessageTooLarge, match="longer than any message"):
                stage.put(zeros, seq=0, event_ns=1, sent_ns=1)
            assert stage.next_seq == 0


def test_a_ring_too_small_still_says_how_large_it_should_be() -> None:
    with pytest.raises(MessageTooLarge, match="capacity_bytes of at least 5000"):
        _core.RingWriter(depth=4, capacity_bytes=4096).send(bytes(5000))
