"""Batches: several messages with one claim of the ring, read with one look at it."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from ringcast.testing.waiting import drained


def test_batches_of_all_kinds_of_buffers_and_lengths_come_out_as_they_went_in(make_ring: Any) -> None:
    rng = random.Random(19)
    ring = make_ring(depth=1024, capacity_bytes=1 << 20)
    writer, reader = ring.writer, ring.reader(reliable=True)
    for _ in range(200):
        sent: list[bytes] = []
        items: list[Any] = []
        for _ in range(rng.randrange(1, 90)):
            data = rng.randbytes(rng.choice((0, 1, 7, 64, 100, 1024, 1025, 3000)))
            sent.append(data)
            items.append(rng.choice((data, bytearray(data), memoryview(data), (data[:3], data[3:]))))
        last = writer.send_many(items)
        got = []
        while len(got) < len(sent):
            got += reader.recv_many(rng.randrange(1, 70), 10.0)
        assert [message.data for message in got] == sent
        assert got[-1].seq == last
        assert all(message.lost == 0 for message in got)


def test_a_batch_longer_than_the_ring_is_counted_as_lost_where_nobody_waits(make_ring: Any) -> None:
    ring = make_ring(depth=512, capacity_bytes=1 << 17)
    writer, reader = ring.writer, ring.reader()
    writer.send_many([b"first"])
    assert [message.data for message in reader.recv_many(10)] == [b"first"]
    writer.send_many([b"%d" % i for i in range(2000)])
    got = drained(reader)
    assert got[-1].data == b"1999"
    assert got[0].lost == 2000 - len(got)
    assert [message.data for message in got] == [b"%d" % i for i in range(2000 - len(got), 2000)]


def test_a_bad_item_stops_a_batch_after_those_before_it(make_ring: Any) -> None:
    ring = make_ring(depth=1024, capacity_bytes=1 << 17)
    writer, reader = ring.writer, ring.reader()
    with pytest.raises(TypeError, match="not int"):
        writer.send_many([b"a"] * 40 + [7] + [b"b"] * 40)
    assert [message.data for message in drained(reader)] == [b"a"] * 40


def test_a_reliable_reader_that_reads_one_by_one_gets_every_batch(make_ring: Any) -> None:
    ring = make_ring(depth=256, capacity_bytes=1 << 17)
    writer, reader = ring.writer, ring.reader(reliable=True)
    for start in range(0, 4096, 128):
        writer.send_many([b"%d" % i for i in range(start, start + 128)])
        assert [reader.recv_nowait().data for _ in range(128)] == [b"%d" % i for i in range(start, start + 128)]


def test_messages_that_a_codec_decodes_are_decoded_in_batches_too(make_ring: Any) -> None:
    ring = make_ring(depth=1024, capacity_bytes=1 << 17)
    writer, reader = ring.writer, ring.reader(decode=int)
    writer.send_many([b"%d" % i for i in range(100)])
    assert [message.data for message in reader.recv_many(100)] == list(range(100))


def test_a_list_that_gets_shorter_while_its_batch_waits_for_room(make_ring: Any) -> None:
    ring = make_ring(depth=64, capacity_bytes=1 << 14)
    writer, reader = ring.writer, ring.reader(reliable=True)
    items = [b"%d" % i for i in range(1000)]
    sending = threading.Thread(target=writer.send_many, args=(items,))
    sending.start()
    got = [reader.recv(30.0)]  # it has begun, and cannot end before more is read: the ring holds 64
    del items[100:]
    while len(got) < 100:
        got += reader.recv_many(8, 30.0)
    sending.join(30.0)
    assert not sending.is_alive()
    assert [message.data for message in got + drained(reader)] == [b"%d" % i for i in range(100)]
