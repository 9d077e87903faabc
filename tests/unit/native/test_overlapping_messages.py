"""A publisher whose entries all lie on the same bytes: pulling takes no more than the ring is long, and reports it."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from ringcast import _core
from ringcast.errors import CorruptRing

DEPTH, CAPACITY = 4096, 64 * 1024
ENTRY, POSITION, LENGTH = 64, 24, 32


@pytest.fixture
def overlapping() -> _core.RingHistory:
    before = _ring_mappings()
    writer = _core.RingWriter(depth=DEPTH, capacity_bytes=CAPACITY)
    for _ in range(DEPTH):
        writer.send(bytes(16))
    # Header, index and bytes; the other new mapping has the bytes once more.
    begin = max(_ring_mappings() - before, key=lambda span: span[1] - span[0])[0]
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for index in range(DEPTH):
            memory.seek(begin + 4096 + index * ENTRY + POSITION)
            memory.write(struct.pack("<QQ", 0, CAPACITY))
    history = _core.RingHistory()
    history.attach(writer.ring_fd, depth=DEPTH, capacity_bytes=CAPACITY, incarnation=writer.incarnation)
    return history


def _ring_mappings() -> set[tuple[int, int]]:
    found = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "memfd:ringcast-ring" in line and " rw-s " in line:
                begin, end = line.split()[0].split("-")
                found.add((int(begin, 16), int(end, 16)))
    return found


def test_a_range_of_them_is_damage_and_takes_no_more_memory_than_the_ring(overlapping: _core.RingHistory) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRing):
            overlapping.range(0, DEPTH)
        assert tracemalloc.get_traced_memory()[1] < 4 * CAPACITY
    finally:
        tracemalloc.stop()


def test_columns_of_them_are_damage(overlapping: _core.RingHistory) -> None:
    with pytest.raises(CorruptRing):
        overlapping.range_columns(0, DEPTH)
