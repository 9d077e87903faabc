"""A cursor whose factor changes while it reads: no duplicates, no disorder, and what it leaves out is no loss."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringcast import _core
from ringcast.testing.waiting import drained


def pair(depth=4096, **how):
    writer = _core.RingWriter(depth=depth, capacity_bytes=1 << 16)
    reader = _core.RingReader()
    reader.attach(
        writer.ring_fd, writer.bell_fd, depth=writer.depth, capacity_bytes=writer.capacity_bytes,
        incarnation=writer.incarnation, **how,
    )  # fmt: skip
    return writer, reader


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9), st.booleans()), min_size=1, max_size=12),
    start=st.sampled_from([_core.START_EARLIEST, _core.START_NEW, 0, 3]),
)
def test_whatever_the_factor_becomes(steps, start):
    writer, reader = pair(start=start, every=1, paced=True)
    found = []
    due: set[int] = set()
    for count, every, read in steps:
        reader.rescale(writer.incarnation, every)
        first = writer.next_seq
        for _ in range(count):
            writer.send(b"x")
        due |= set(range(first, writer.next_seq))
        if read:
            found += drained(reader)
    found += drained(reader)
    numbers = [msg.seq for msg in found]
    assert numbers == sorted(set(numbers))
    assert {msg.lost for msg in found} <= {0}
    assert set(numbers) <= due


def test_what_was_overwritten_is_loss_by_the_factor():
    writer, reader = pair(depth=8, start=0, every=1, paced=True)
    writer.send(b"x")
    assert drained(reader)[0].seq == 0
    reader.rescale(writer.incarnation, 4)
    for _ in range(40):
        writer.send(b"x")
    found = drained(reader)
    assert [msg.seq for msg in found] == [36, 40]
    # 1 came next, by the factor before; of what followed, 4 to 32 were due.
    assert [msg.lost for msg in found] == [8, 0]


def test_an_unknown_ring():
    _, reader = pair(paced=True)
    assert reader.rescale(12345, 2) is False


@pytest.mark.parametrize(("step", "lost"), [(1, 4), (2, 2), (4, 1)])
def test_a_beginning_that_is_gone_is_counted_in_steps_of_the_ring(step, lost):
    writer = _core.StageWriter(depth=8, capacity_bytes=4096, first_seq=0)
    for seq in (8, 12, 16):
        writer.put(b"x", seq=seq, event_ns=1, sent_ns=2)
    reader = _core.RingReader()
    reader.attach(
        writer.ring_fd, writer.bell_fd, depth=writer.depth, capacity_bytes=writer.capacity_bytes,
        incarnation=writer.incarnation, start=4, step=step,
    )  # fmt: skip
    assert [(msg.seq, msg.lost) for msg in drained(reader)] == [(8, lost), (12, 0), (16, 0)]
