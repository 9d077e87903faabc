"""What goes in comes out: every kind of buffer, every way to receive, and the errors of both."""

import array
import ctypes
import time
from typing import Any

import numpy as np
import pytest

from ringcast import _core
from ringcast.errors import ClosedError, MessageTooLarge, RingcastError, WouldBlock


def test_message_carries_what_was_sent(ring: Any) -> None:
    reader = ring.reader()
    before = time.time_ns()
    assert ring.send(b"21.5", event_ns=77, discardable=True) == 0
    message = reader.recv()
    assert message.data == b"21.5"
    assert (message.seq, message.tag, message.publisher, message.event_ns) == (0, "lab/temp", "me", 77)
    assert message.discardable is True
    assert message.lost == 0
    assert message.valid
    assert before <= message.sent_ns <= message.received_ns <= time.time_ns()
    assert "lab/temp" in repr(message)
    assert "#0" in repr(message)


def test_event_time_is_the_time_of_sending_unless_given(ring: Any) -> None:
    reader = ring.reader()
    ring.send(b"")
    message = reader.recv()
    assert message.event_ns == message.sent_ns
    assert message.data == b""
    assert not message.discardable


@pytest.mark.parametrize("event_ns", [-(2**63), -1, 0, 2**63 - 1])
def test_any_event_time_fits(ring: Any, event_ns: int) -> None:
    reader = ring.reader()
    ring.send(b"x", event_ns=event_ns)
    assert reader.recv().event_ns == event_ns


@pytest.mark.parametrize("event_ns", ["soon", 1.5, 2**63, object()])
def test_event_time_must_be_an_integer(ring: Any, event_ns: object) -> None:
    with pytest.raises(TypeError, match="event_ns"):
        ring.send(b"x", event_ns=event_ns)
    assert ring.writer.next_seq == 0


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (b"bytes", b"bytes"),
        (bytearray(b"bytearray"), b"bytearray"),
        (memoryview(b"0123456789")[3:7], b"3456"),
        (array.array("H", [1, 2]), b"\1\0\2\0"),
        (np.arange(3, dtype=np.uint8), b"\0\1\2"),
        (np.ones((2, 2), dtype=np.uint8), b"\1\1\1\1"),
        ((ctypes.c_char * 3).from_buffer_copy(b"abc"), b"abc"),
        ((), b""),
        ((b"one, ", bytearray(b"two, "), memoryview(b"three")), b"one, two, three"),
        (tuple(b"abcdefgh"[i : i + 1] for i in range(8)), b"abcdefgh"),
    ],
)
def test_anything_with_the_buffer_protocol_can_be_sent(ring: Any, value: object, data: bytes) -> None:
    reader = ring.reader()
    ring.send(value)
    ring.writer.send_many([value, value])
    assert [m.data for m in reader.recv_many(9)] == [data] * 3


def test_buffers_are_let_go_of_after_sending(ring: Any) -> None:
    data = bytearray(b"x" * 100)
    ring.send(data)
    ring.writer.send_many([data, (data, data)])
    with pytest.raises(MessageTooLarge):
        ring.send((data, bytes(5000)))
    with pytest.raises(TypeError):
        ring.send((data, 5))
    data.clear()  # BufferError if somebody held it


@pytest.mark.parametrize("value", ["text", 5, None, [b"list"], {"a": 1}, (b"a", "b")])
def test_other_values_need_a_codec(ring: Any, value: object) -> None:
    with pytest.raises(TypeError, match="codec"):
        ring.send(value)
    assert ring.writer.next_seq == 0


@pytest.mark.parametrize(
    "value",
    [
        np.arange(10, dtype=np.uint8)[::2],
        np.ones((4, 4))[:, 1],
        np.asfortranarray(np.ones((3, 4))),
        memoryview(b"0123")[::2],
    ],
)
def test_bytes_that_are_not_contiguous_are_refused_with_a_remedy(ring: Any, value: object) -> None:
    with pytest.raises(BufferError, match="ascontiguousarray") as caught:
        ring.send(value)
    assert caught.value.__cause__ is not None
    assert ring.writer.next_seq == 0


def test_more_parts_than_a_message_can_have(ring: Any) -> None:
    with pytest.raises(ValueError, match="8"):
        ring.send((b"x",) * 9)


def test_message_as_large_as_the_ring_and_one_larger(ring: Any) -> None:
    reader = ring.reader()
    ring.send(b"x" * 4096)
    assert reader.recv().data == b"x" * 4096
    with pytest.raises(MessageTooLarge) as caught:
        ring.send(b"x" * 4097)
    assert (caught.value.length, caught.value.capacity_bytes) == (4097, 4096)
    ring.send(b"goes on")
    assert reader.recv().data == b"goes on"


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 2047, 2048, 2049, 32767, 32768, 100_000, 1 << 20])
def test_lengths_around_every_way_of_copying(make_ring: Any, length: int) -> None:
    ring = make_ring(capacity_bytes=1 << 20)
    reader = ring.reader()
    data = np.random.default_rng(length).bytes(length)
    ring.send(data)
    ring.send((data[: length // 3], data[length // 3 :]))
    assert reader.recv().data == data if length <= 1 << 19 else True
    *_, last = reader.recv_many(2)
    assert last.data == data


def test_send_many_is_one_moment_and_returns_the_last_number(ring: Any) -> None:
    reader = ring.reader()
    assert ring.writer.send_many([b"a", b"b", b"c"]) == 2
    assert ring.writer.send_many((b"d",)) == 3
    messages = reader.recv_many(10)
    assert [m.data for m in messages] == [b"a", b"b", b"c", b"d"]
    assert len({m.sent_ns for m in messages[:3]}) == 1
    with pytest.raises(ValueError, match="at least one"):
        ring.writer.send_many([])
    with pytest.raises(TypeError):
        ring.writer.send_many(5)


def test_send_many_sends_those_before_a_bad_item(ring: Any) -> None:
    reader = ring.reader()
    with pytest.raises(TypeError):
        ring.writer.send_many([b"a", b"b", 3, b"d"])
    with pytest.raises(MessageTooLarge):
        ring.writer.send_many([b"c", bytes(5000)])
    assert [m.data for m in reader.recv_many(10)] == [b"a", b"b", b"c"]


def test_recv_many_takes_what_is_there_and_no_more_than_asked(ring: Any) -> None:
    reader = ring.reader()
    ring.writer.send_many([b"%d" % i for i in range(10)])
    assert [m.seq for m in reader.recv_many(4)] == [0, 1, 2, 3]
    assert [m.seq for m in reader.recv_many(100)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(TimeoutError):
        reader.recv_many(5, timeout=0)
    with pytest.raises(ValueError, match="at least one"):
        reader.recv_many(0)


def test_batch_is_never_received_before_it_was_sent(make_ring: Any) -> None:
    ring = make_ring(depth=4096, capacity_bytes=1 << 20)
    reader = ring.reader()
    for _ in range(2000):
        ring.send(b"x")
    assert all(m.received_ns >= m.sent_ns for m in reader.recv_many(2000))


def test_nothing_there(ring: Any) -> None:
    reader = ring.reader()
    with pytest.raises(WouldBlock):
        reader.recv_nowait()
    for timeout in (0, 0.0, 0.001, -1, float("-inf")):
        with pytest.raises(TimeoutError, match="no message within"):
            reader.recv(timeout=timeout)
    ring.send(b"x")
    assert reader.recv_nowait().data == b"x"
    assert isinstance(WouldBlock(), RingcastError)


@pytest.mark.parametrize("timeout", ["1", [], object()])
def test_timeout_must_be_a_number(ring: Any, timeout: object) -> None:
    with pytest.raises(TypeError, match="timeout"):
        ring.reader().recv(timeout=timeout)
    with pytest.raises(ValueError, match="NaN"):
        ring.reader().recv(timeout=float("nan"))


def test_timeout_of_ages_does_not_overflow(ring: Any) -> None:
    reader = ring.reader()
    ring.writer.send_many([b"x"] * 3)
    for timeout in (1e300, float("inf"), 10**9):
        assert reader.recv(timeout=timeout).data == b"x"


@pytest.mark.parametrize(("start", "seqs"), [
    (_core.START_NEW, []), (_core.START_LATEST, [19]), (_core.START_EARLIEST, range(12, 20)), (15, range(15, 20)),
    (20, []), (3, range(12, 20)),
])  # fmt: skip
def test_start_decides_what_a_joiner_sees(make_ring: Any, start: int, seqs: range) -> None:
    ring = make_ring(depth=8)
    for _ in range(20):
        ring.send(b"x")
    reader = ring.reader(start=start)
    if seqs:
        assert [m.seq for m in reader.recv_many(100)] == list(seqs)
    ring.send(b"new")
    message = reader.recv()
    assert (message.seq, message.lost) == (20, 0)


def test_start_counts_numbers_that_are_gone(make_ring: Any) -> None:
    ring = make_ring(depth=8)
    for _ in range(20):
        ring.send(b"x")
    assert ring.reader(start=3).recv().lost == 9
    assert ring.reader(start=_core.START_EARLIEST).recv().lost == 0
    with pytest.raises(ValueError, match="start"):
        ring.reader(start=-4)


def test_overtaken_reader_learns_what_it_lost(make_ring: Any) -> None:
    ring = make_ring(depth=8)
    reader = ring.reader()
    for _ in range(30):
        ring.send(b"x")
    first = reader.recv()
    assert (first.seq, first.lost) == (22, 22)
    assert reader.recv().lost == 0
    assert reader.counters() == {"received": 2, "lost": 22, "bytes": 2, "corrupt": 0, "rings": 1}


def test_several_rings_take_turns(make_ring: Any) -> None:
    rings = [make_ring() for _ in range(20)]
    reader = _core.RingReader()
    for ring in rings:
        ring.attach(reader, publisher=ring)
    for ring in rings:
        ring.writer.send_many([b"x"] * 3)
    first = reader.recv_many(20)
    assert {m.publisher for m in first} == set(rings)
    assert len(reader.recv_many(100)) == 40


def test_ring_is_attached_once_and_detached_once(ring: Any) -> None:
    reader = ring.reader()
    assert reader.attach(ring.writer.ring_fd, ring.writer.bell_fd, **ring.grant) is False
    assert reader.incarnations == [ring.writer.incarnation]
    ring.send(b"x")
    assert reader.detach(ring.writer.incarnation)
    assert reader.recv().data == b"x"
    with pytest.raises(WouldBlock):
        reader.recv_nowait()
    assert reader.incarnations == []
    assert reader.detach(ring.writer.incarnation) is False
    assert reader.attach(ring.writer.ring_fd, ring.writer.bell_fd, **ring.grant, start=_core.START_EARLIEST)
    assert reader.recv().data == b"x"


def test_closed_means_closed(ring: Any) -> None:
    reader = ring.reader()
    reader.close()
    reader.close()
    assert reader.closed
    for use in (
        reader.recv,
        reader.recv_nowait,
        lambda: reader.recv_many(1),
        reader.newest,
        reader.use_mailbox,
        reader.poke,
    ):
        with pytest.raises(ClosedError, match="subscriber"):
            use()
    with pytest.raises(ClosedError):
        ring.attach(reader)
    writer = ring.writer
    writer.close()
    writer.close()
    assert writer.closed
    for use in (
        lambda: writer.send(b"x"),
        lambda: writer.send_many([b"x"]),
        lambda: writer.reserve(1),
        writer.counters,
    ):
        with pytest.raises(ClosedError, match="publisher"):
            use()
    for name in ("ring_fd", "bell_fd", "incarnation", "depth", "capacity_bytes", "memory_bytes", "next_seq"):
        with pytest.raises(ClosedError):
            getattr(writer, name)


def test_rings_of_a_closed_writer_are_read_to_the_end(ring: Any) -> None:
    reader = ring.reader()
    ring.send(b"last words")
    ring.writer.close()
    assert reader.recv().data == b"last words"


def test_newest_and_waiting_for_a_newer_one(ring: Any, make_ring: Any) -> None:
    reader = ring.reader()
    assert reader.newest() is None
    with pytest.raises(TimeoutError):
        reader.wait_newer(0, timeout=0)
    other = make_ring()
    other.attach(reader)
    other.send(b"older")
    ring.send(b"newer")
    newest = reader.newest()
    assert newest.data == b"newer"
    assert reader.wait_newer(0).data == b"newer"
    with pytest.raises(TimeoutError):
        reader.wait_newer(newest.sent_ns, timeout=0.001)
    assert [m.data for m in reader.recv_many(5)].count(b"newer") == 1  # cursors did not move


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 0}, {"depth": 2**32 + 1}, {"depth": 2**64 - 1}, {"capacity_bytes": 0}, {"capacity_bytes": 2**38 + 1},
        {"capacity_bytes": 2**64 - 1}, {"max_wait_s": -1.0}, {"max_wait_s": float("nan")},
    ],
)  # fmt: skip
def test_impossible_rings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"depth|capacity_bytes|max_wait_s"):
        _core.RingWriter(**{"depth": 1, "capacity_bytes": 1, **options})


def test_waiting_bound_may_be_endless() -> None:
    for forever in (float("inf"), 1e300):
        _core.RingWriter(depth=1, capacity_bytes=1, max_wait_s=forever).send(b"x")


def test_sizes_say_what_a_ring_can_come_to_occupy() -> None:
    writer = _core.RingWriter(depth=100, capacity_bytes=5000)
    assert (writer.depth, writer.capacity_bytes) == (100, 8192)
    assert writer.memory_bytes + _core.PAGE_BYTES == _core.ring_memory_bytes(100, 5000)
    assert _core.RingWriter(depth=1, capacity_bytes=1, incarnation=77).incarnation == 77
    with pytest.raises(ValueError, match="depth"):
        _core.ring_memory_bytes(0, 1)


def test_methods_check_whom_they_are_called_on() -> None:
    for call in (lambda: _core.RingWriter.reserve(42, 5), lambda: _core.Reservation.__enter__(42)):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            call()
    for kind in (_core.Reservation, _core.RingBytes):  # type: ignore[attr-defined]
        with pytest.raises(BufferError):
            memoryview(kind.__new__(kind))
